// The API over HTTP/1.1 and WebSocket (/api/socket), on one thread for the network, one for what is shipped, and in
// each of the other lanes (sim/serve/api.h) one a core.
//
// Bounded whatever is sent: 8 KiB of headers, 1 MiB of body, a time for each part of a request, so many connections
// and waiting questions; who comes beyond that is told 503. Tested by tests/serve/server_test.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/serve/api.h"

namespace ridgeline::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";  ///< an address of this machine, or localhost
  std::uint16_t port = 8137;       ///< 0: one that is free
  int connections = 128;
  int waiting = 64;  ///< questions of a lane that are being answered or wait for it
  int workers = 0;   ///< of a lane; 0: as many as there are cores
  std::chrono::milliseconds header_time{10'000}, body_time{10'000}, idle_time{60'000}, write_time{30'000};
  bool until_signal = true;  ///< SIGINT and SIGTERM end run()
};

class Server {
 public:
  /// Listens; throws UserError where it cannot (no such address, a port that is taken). `api` must outlive it.
  Server(Api& api, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Answers until stop() is called, by any thread. Questions that are being answered are given up.
  void run();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline::serve
