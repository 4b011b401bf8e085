// A server of its own and clients that speak to it by bytes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "sim/serve/server.h"

namespace ridgeline::serve {

/// One end of a connection, closed when it goes.
class Client {
 public:
  /// `room`: bytes that arrive before anybody reads them; 0: as many as usual.
  explicit Client(std::uint16_t port, int room = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (room > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  Client(const Client&) = delete;
  ~Client() { hang_up(); }
  void hang_up() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  [[nodiscard]] bool connected() const { return connected_; }
  bool send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// Up to the end of the connection, `until` in what came, or `ms` without anything.
  [[nodiscard]] std::string receive(const std::string& until = "", int ms = 5000) const {
    std::string text;
    char piece[4096];
    pollfd waiting{socket_, POLLIN, 0};
    while (::poll(&waiting, 1, ms) == 1) {
      const ssize_t count = ::recv(socket_, piece, sizeof piece, 0);
      if (count <= 0) break;
      text.append(piece, static_cast<std::size_t>(count));
      if (!until.empty() && text.find(until) != std::string::npos) break;
    }
    return text;
  }
  /// The next bytes that come, or nothing after `ms` or at the end.
  [[nodiscard]] std::string some(int ms) const {
    char piece[65536];
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, ms) != 1) return "";
    const ssize_t count = ::recv(socket_, piece, sizeof piece, 0);
    return count > 0 ? std::string(piece, static_cast<std::size_t>(count)) : "";
  }
  /// Whether the other side has ended it, or does so within `ms`; nothing else may come.
  [[nodiscard]] bool ends_within(int ms) const {
    char byte = 0;
    pollfd waiting{socket_, POLLIN, 0};
    return ::poll(&waiting, 1, ms) == 1 && ::recv(socket_, &byte, 1, 0) <= 0;
  }

 private:
  int socket_;
  bool connected_ = false;
};

/// Headers that every answer in JSON has.
inline std::string reply_head() {
  return "Server: ridgeline\r\n"
         "Content-Type: application/json\r\n"
         "Cache-Control: no-store\r\n"
         "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src "
         "data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
         "X-Content-Type-Options: nosniff\r\n"
         "Referrer-Policy: no-referrer\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\n"
         "Cross-Origin-Opener-Policy: same-origin\r\n";
}

inline std::string request(const std::string& target, const std::string& headers = "", const std::string& body = "",
                           const std::string& method = "GET") {
  return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}
/// The same on a connection that stays.
inline std::string kept(const std::string& target, const std::string& body = "") {
  const std::string method = body.empty() ? "GET " : "POST ";
  return method + target + " HTTP/1.1\r\nHost: localhost\r\n" +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

/// A sweep of so many points of a small network.
inline std::string sweep_body(int points) {
  return R"({"scenario":{"hardware":"nvidia-t4","model":"gpt2-xl","training":{"micro_batch":1,"sequence_length":64,)"
         R"("precision":"fp32"}},"axes":{"training.sequence_length":{"range":[1,)" +
         std::to_string(points) + R"(],"step":1}}})";
}
/// What nobody waits for to the end.
inline std::string endless_sweep() { return sweep_body(1000); }

inline std::string upgrade(const std::string& headers, const std::string& target = "/api/socket") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + headers +
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
}

/// A masked frame of RFC 6455; the mask is of zeros.
inline std::string frame(int opcode, const std::string& text, bool masked = true) {
  std::string out{static_cast<char>(0x80 | opcode)};
  const char mask = masked ? static_cast<char>(0x80) : '\0';
  const auto length = [&](int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(text.size() >> (8 * i) & 0xff);
  };
  if (text.size() < 126) out += static_cast<char>(mask | static_cast<char>(text.size()));
  else if (text.size() < 65536) out += static_cast<char>(mask | 126), length(2);
  else out += static_cast<char>(mask | 127), length(8);
  if (masked) out += std::string(4, '\0');
  return out + text;
}

/// Runs as long as it lives, on a port that is free.
class OwnServer {
 public:
  explicit OwnServer(ServerOptions options = {}, ApiOptions api = {.tool = "test"})
      : api_(std::move(api)), server_(api_, own(options)), thread_([this] { server_.run(); }) {}
  ~OwnServer() { stop(); }
  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string said(const std::string& text) const {
    const Client client(port());
    client.send(text);
    return client.receive();
  }
  [[nodiscard]] bool answers() const { return said(request("/api/hosts")).starts_with("HTTP/1.1 200"); }

 private:
  static ServerOptions own(ServerOptions options) {
    options.port = 0;
    options.until_signal = false;
    return options;
  }
  Api api_;
  Server server_;
  std::uint16_t port_ = server_.port();
  std::thread thread_;
};

}  // namespace ridgeline::serve
