#include "sim/serve/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "sim/serve/network.h"
#include "sim/units/user_error.h"

namespace ridgeline::serve {
namespace {

using tcp = asio::ip::tcp;

constexpr int kMostRefusals = 256;

tcp::endpoint endpoint_of(const ServerOptions& options) {
  boost::system::error_code error;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) throw UserError(fmt::format("--host: '{}' is no address in numbers, nor localhost", options.host));
  return {address, options.port};
}

/// Of each lane whose questions take time.
std::size_t threads_of(const ServerOptions& options) {
  return options.workers > 0 ? static_cast<std::size_t>(options.workers)
                             : std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

Network::Network(Api& answering, const ServerOptions& chosen)
    : api(answering), options(chosen), answers(threads_of(chosen)), studies(threads_of(chosen)) {}

bool Network::answer(Request request, std::stop_token stop, OnProgress progress, std::function<void(Reply)> done) {
  Workers& lane = of(lane_of(request));
  if (lane.waiting >= options.waiting || ending) return false;
  ++lane.waiting;
  asio::post(lane.pool, [this, &lane, request = std::move(request), stop = std::move(stop),
                         progress = std::move(progress), done = std::move(done)]() mutable {
    Reply reply = stop.stop_requested() ? error_reply(409, "given up") : api.answer(request, stop, progress);
    asio::post(io, [&lane, reply = std::move(reply), done = std::move(done)]() mutable {
      --lane.waiting;
      done(std::move(reply));
    });
  });
  return true;
}

struct Server::State {
  State(Api& api, const ServerOptions& options) : network(api, options), acceptor(network.io), pause(network.io) {
    const tcp::endpoint endpoint = endpoint_of(options);
    boost::system::error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw UserError(
          fmt::format("cannot listen on {} port {}: {} (--port, --host)", options.host, options.port, error.message()));
    network.on_room = [this] {
      if (held && !network.ending) accept();
    };
  }

  void accept() {
    held = network.refusals >= kMostRefusals;
    if (held) return;  // who connects waits until a refusal was told
    acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (network.ending) return;
      if (error) {  // out of descriptors: others end
        pause.expires_after(std::chrono::milliseconds(100));
        pause.async_wait([this](boost::system::error_code) {
          if (!network.ending) accept();
        });
        return;
      }
      // Who says nothing makes room for who comes later: connections that drip keep nobody out.
      if (network.connections >= network.options.connections && !network.silent.empty())
        network.silent.front()->make_room();
      else if (network.connections >= network.options.connections) {
        begin_refusal(network, std::move(socket));
        return accept();
      }
      begin_connection(network, std::move(socket));
      accept();
    });
  }

  void end() {
    if (std::exchange(network.ending, true)) return;
    boost::system::error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
    for (Peer* peer : std::set<Peer*>(network.peers)) peer->end();
    network.io.stop();
  }

  Network network;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  bool held = false;
};

Server::Server(Api& api, const ServerOptions& options) : state_(std::make_unique<State>(api, options)) {}

Server::~Server() {
  state_->end();
  for (const Lane lane : {Lane::shipped, Lane::answers, Lane::studies}) state_->network.of(lane).pool.join();
  state_->network.on_room = {};
  // Answers that were posted meanwhile.
  state_->network.io.restart();
  state_->network.io.poll();
}

std::uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::run() {
  asio::signal_set signals(state_->network.io);
  if (state_->network.options.until_signal) {
    signals.add(SIGINT);
    signals.add(SIGTERM);
    signals.async_wait([this](boost::system::error_code error, int) {
      if (!error) state_->end();
    });
  }
  state_->accept();
  state_->network.io.run();
}

void Server::stop() {
  asio::post(state_->network.io, [this] { state_->end(); });
}

}  // namespace ridgeline::serve
