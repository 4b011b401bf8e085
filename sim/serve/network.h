// Inside of the server, with Beast: what its connections share. Everything here runs on the network's thread but for
// the work handed to the workers of a lane.
#pragma once

#include <unistd.h>

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "sim/serve/request_reader.h"
#include "sim/serve/server.h"

namespace ridgeline::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

/// A connection of either kind, as far as the server that ends has to do with it.
class Peer {
 public:
  Peer() = default;
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  /// Gives up what is being answered, and closes.
  virtual void end() = 0;
  /// Tells that there is no room, and closes; only of who has asked nothing yet.
  virtual void make_room() = 0;
};

struct Network {
  Network(Api& answering, const ServerOptions& chosen);

  Api& api;
  ServerOptions options;
  int connections = 0, refusals = 0;
  bool ending = false;
  std::set<Peer*> peers;
  std::list<Peer*> silent;        ///< those that have not said what they want, who waits longest in front
  std::function<void()> on_room;  ///< a connection or a refusal ended
  // Destroyed first: what they still hold are connections, which know all of the above.
  asio::io_context io{1};
  struct Workers {
    explicit Workers(std::size_t threads) : pool(threads) {}
    int waiting = 0;  ///< questions that are being answered or wait for it
    asio::thread_pool pool;
  };
  Workers shipped{1}, answers, studies;
  [[nodiscard]] Workers& of(Lane lane) {
    return lane == Lane::shipped ? shipped : lane == Lane::answers ? answers : studies;
  }

  /// Answers on a worker, then calls `done` with the reply on the network's thread. False where too many wait.
  bool answer(Request request, std::stop_token stop, OnProgress progress, std::function<void(Reply)> done);
};

/// One place among the connections; in `peers` as long as it lives.
class Admitted : public Peer {
 public:
  explicit Admitted(Network& network) : network_(network) {
    ++network_.connections;
    network_.peers.insert(this);
  }
  ~Admitted() override {
    spoke();
    --network_.connections;
    network_.peers.erase(this);
    if (network_.on_room) network_.on_room();
  }

  void make_room() override {}

 protected:
  /// From now on until it spoke() it may have to make room for others.
  void listen() {
    spoke();
    waits_ = network_.silent.insert(network_.silent.end(), this);
  }
  void spoke() {
    if (waits_) network_.silent.erase(*waits_);
    waits_.reset();
  }
  Network& network_;

 private:
  std::optional<std::list<Peer*>::iterator> waits_;
};

/// Reads and answers requests of one connection.
void begin_connection(Network& network, asio::ip::tcp::socket socket);
/// Tells 503 and closes.
void begin_refusal(Network& network, asio::ip::tcp::socket socket);
/// Takes a connection over whose request asked for a WebSocket. `first`: that request with its headers.
void begin_socket(Network& network, beast::tcp_stream stream, HttpRequest first, Request asked);

}  // namespace ridgeline::serve
