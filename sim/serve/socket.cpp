// WebSocket: questions with a number of their own, answered in any order, with progress, and given up when told.
//
//   {"id": 7, "target": "/api/sweep", "body": {…}}      a question; without body it is asked with GET
//   {"cancel": 7}                                       gives it up
//   {"id": 7, "progress": {"done": 12, "total": 96}}    from the server, now and then
//   {"id": 7, "status": 200, "answer": …}               from the server, once
#include <fmt/format.h>

#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/serve/network.h"

namespace ridgeline::serve {
namespace {

using boost::system::error_code;
namespace websocket = beast::websocket;

constexpr std::size_t kMostAsked = 4, kMostUnsent = 64, kMostUnsentBytes = 32 << 20;
constexpr std::chrono::milliseconds kBetweenProgress{100};

class Socket final : public Admitted, public std::enable_shared_from_this<Socket> {
 public:
  Socket(Network& network, beast::tcp_stream stream, HttpRequest first, Request asked)
      : Admitted(network), socket_(std::move(stream)), first_(std::move(first)), headers_(std::move(asked)) {
    const std::string_view target = headers_.target;
    if (const std::size_t at = target.find("token="); at != std::string_view::npos && headers_.authorization.empty())
      headers_.authorization = fmt::format("Bearer {}", target.substr(at + 6, target.find('&', at) - at - 6));
  }

  void begin() {
    beast::get_lowest_layer(socket_).expires_never();
    socket_.set_option(websocket::stream_base::timeout{std::chrono::seconds(10), std::chrono::seconds(60), true});
    socket_.read_message_max(kMostBodyBytes);
    socket_.async_accept(first_, [self = shared_from_this()](error_code error) {
      self->first_ = {};
      if (!error) self->read();
    });
  }

  void end() override {
    give_up();
    error_code ignored;
    beast::get_lowest_layer(socket_).socket().close(ignored);
  }

 private:
  struct Asked {
    std::stop_source stop;
    std::chrono::steady_clock::time_point told;
  };

  void give_up() {
    for (auto& [id, asked] : asked_) asked->stop.request_stop();
  }

  void read() {
    socket_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->give_up();
      const std::string text = beast::buffers_to_string(self->buffer_.data());
      self->buffer_.consume(self->buffer_.size());
      self->take(text);
      self->read();
    });
  }

  void take(const std::string& text) {
    SocketMessage message = read_message(text, socket_.got_text());
    if (!message.mistake.empty()) return send(error_reply(400, message.mistake).body);
    if (message.cancel >= 0) {
      if (const auto found = asked_.find(message.cancel); found != asked_.end()) found->second->stop.request_stop();
      return;
    }
    Request request = headers_;
    request.target = std::move(message.target);
    request.method = message.has_body ? "POST" : "GET";
    request.body = std::move(message.body);
    ask(message.id, std::move(request));
  }

  void ask(std::int64_t id, Request request) {
    if (asked_.size() >= kMostAsked || asked_.contains(id))
      return reply(id, error_reply(503, asked_.contains(id) ? "a question of that id is being answered"
                                                            : "four questions of this socket are being answered"));
    auto asked = std::make_shared<Asked>();
    asked_[id] = asked;
    std::weak_ptr<Socket> weak = weak_from_this();
    asio::io_context& io = network_.io;
    const OnProgress progress = [weak, &io, id](std::uint64_t done, std::uint64_t total) {
      asio::post(io, [weak, id, done, total] {
        if (const auto self = weak.lock()) self->progress(id, done, total);
      });
    };
    const bool taken = network_.answer(std::move(request), asked->stop.get_token(), progress, [weak, id](Reply answer) {
      const auto self = weak.lock();
      if (!self) return;
      self->asked_.erase(id);
      self->reply(id, answer);
    });
    if (taken) return;
    asked_.erase(id);
    reply(id, error_reply(503, "as many questions as this server takes are waiting; ask again"));
  }

  void progress(std::int64_t id, std::uint64_t done, std::uint64_t total) {
    const auto found = asked_.find(id);
    const auto now = std::chrono::steady_clock::now();
    if (found == asked_.end() || now - found->second->told < kBetweenProgress) return;
    found->second->told = now;
    send(fmt::format(R"({{"id":{},"progress":{{"done":{},"total":{}}}}})", id, done, total));
  }

  void reply(std::int64_t id, const Reply& answer) {
    const bool json = answer.type == "application/json";
    send(fmt::format(R"({{"id":{},"status":{},"answer":{}}})", id, answer.status,
                     json
                         ? answer.body
                         : nlohmann::json(answer.body).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  }

  /// Who does not read what was asked for is left.
  void send(std::string text) {
    if (unsent_.size() >= kMostUnsent || (!unsent_.empty() && unsent_bytes_ + text.size() > kMostUnsentBytes))
      return end();
    unsent_bytes_ += text.size();
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write();
  }
  void write() {
    socket_.text(true);
    socket_.async_write(asio::buffer(unsent_.front()), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->give_up();
      self->unsent_bytes_ -= self->unsent_.front().size();
      self->unsent_.pop_front();
      if (!self->unsent_.empty()) self->write();
    });
  }

  websocket::stream<beast::tcp_stream> socket_;
  HttpRequest first_;
  Request headers_;
  beast::flat_buffer buffer_;
  std::map<std::int64_t, std::shared_ptr<Asked>> asked_;
  std::deque<std::string> unsent_;
  std::size_t unsent_bytes_ = 0;
};

}  // namespace

void begin_socket(Network& network, beast::tcp_stream stream, HttpRequest first, Request asked) {
  std::make_shared<Socket>(network, std::move(stream), std::move(first), std::move(asked))->begin();
}

}  // namespace ridgeline::serve
