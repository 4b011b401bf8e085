// HTTP: one request after the other, each read within limits of size and time.
#include <sys/socket.h>

#include <optional>

#include "sim/serve/network.h"

namespace ridgeline::serve {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kBufferBytes = 64 << 10;
constexpr std::chrono::seconds kLinger{1};

/// The page draws with what it brought, and asks its own server alone.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

template <class Fields>
void add_headers(Fields& response, const Reply& reply) {
  response.set(http::field::server, "ridgeline");
  response.set(http::field::content_type, reply.type);
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy", kPolicy);
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  if (!reply.allow.empty()) response.set(http::field::allow, reply.allow);
}

class Connection final : public Admitted, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Network& network, tcp::socket socket) : Admitted(network), stream_(std::move(socket)) {}

  void read() {
    parser_.emplace();
    set_limits(*parser_);
    stream_.expires_after(first_ ? network_.options.header_time : network_.options.idle_time);
    first_ = false;
    listen();
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->on_header(error); });
  }

  void end() override {
    stop_.request_stop();
    error_code ignored;
    stream_.socket().close(ignored);
  }

  void make_room() override {
    spoke();
    gone_ = true;  // the reading ends with the socket that is taken from it
    error_code ignored;
    stream_.socket().cancel(ignored);
    begin_refusal(network_, stream_.release_socket());
  }

 private:
  void on_header(error_code error) {
    if (gone_) return;
    if (error) return refuse(error);
    asked_ = request_of(parser_->get());
    keep_alive_ = parser_->get().keep_alive();
    if (is_ambiguous(parser_->get()))
      return last_word(error_reply(400, "one header Host is needed, of others one at most"));
    if (parser_->chunked())
      return last_word(error_reply(411, "a body needs its length (Content-Length); one in chunks is not read"));
    if (Reply refused = network_.api.admit(asked_); refused.status != 200) return last_word(std::move(refused));
    if (beast::websocket::is_upgrade(parser_->get())) {
      if (asked_.target.substr(0, asked_.target.find('?')) != "/api/socket" || buffer_.size() > 0)
        return last_word(error_reply(404, "a WebSocket is at /api/socket"));
      return begin_socket(network_, std::move(stream_), parser_->release(), asked_);
    }
    stream_.expires_after(network_.options.body_time);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      go_on_.emplace(http::status::continue_, 11);
      return http::async_write(stream_, *go_on_, [self = shared_from_this()](error_code failed, std::size_t) {
        if (!failed && !self->gone_) self->read_body();
      });
    }
    read_body();
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) { self->on_body(error); });
  }

  void on_body(error_code error) {
    if (gone_) return;
    if (error) return refuse(error);
    spoke();
    asked_.body = std::move(parser_->get().body());
    head_ = asked_.method == "HEAD";
    stream_.expires_never();
    stop_ = std::stop_source();
    const bool taken =
        network_.answer(std::move(asked_), stop_.get_token(), {}, [self = shared_from_this()](Reply reply) {
          self->answered_ = true;
          if (!self->stream_.socket().is_open()) return;
          error_code ignored;
          self->stream_.socket().cancel(ignored);  // the watch
          self->write(std::move(reply));
        });
    if (!taken) return write(error_reply(503, "as many questions as this server takes are waiting; ask again"));
    answered_ = false;
    watch();
  }

  /// Who hangs up does not want the answer any more.
  void watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      if (error || self->answered_) return;
      char byte = 0;
      if (::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        self->stop_.request_stop();
    });
  }

  void write(Reply reply) {
    stream_.expires_after(network_.options.write_time);
    response_.emplace(static_cast<http::status>(reply.status), 11);
    add_headers(*response_, reply);
    response_->keep_alive(keep_alive_);
    response_->content_length(reply.body.size());
    if (!head_) response_->body() = std::move(reply.body);
    serializer_.emplace(*response_);
    const auto written = [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); };
    if (head_) http::async_write_header(stream_, *serializer_, written);
    else http::async_write(stream_, *serializer_, written);
  }

  void on_written(error_code error) {
    serializer_.reset();
    response_.reset();
    if (error) return;
    if (keep_alive_ && !network_.ending) return read();
    linger();
  }

  void last_word(Reply reply) {
    spoke();
    keep_alive_ = false;
    write(std::move(reply));
  }

  void refuse(error_code error) {
    if (std::optional<Reply> reply = reply_to_error(error)) last_word(std::move(*reply));
    else linger();
  }

  /// What was said arrives although the other side is still talking.
  void linger() {
    spoke();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (ignored) return;
    stream_.expires_after(kLinger);
    drain();
  }
  void drain() {
    stream_.async_read_some(asio::buffer(thrown_away_), [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->drain();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kBufferBytes};
  std::optional<RequestParser> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::optional<http::response<http::empty_body>> go_on_;
  std::array<char, 1024> thrown_away_{};
  Request asked_;
  std::stop_source stop_;
  bool first_ = true, gone_ = false, keep_alive_ = false, head_ = false, answered_ = true;
};

class Refusal final : public std::enable_shared_from_this<Refusal> {
 public:
  Refusal(Network& network, tcp::socket socket) : network_(network), stream_(std::move(socket)) { ++network_.refusals; }
  ~Refusal() {
    --network_.refusals;
    if (network_.on_room) network_.on_room();
  }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

  void tell() {
    const Reply reply = error_reply(503, "as many connections as this server takes are open; try again");
    response_.result(http::status::service_unavailable);
    response_.version(11);
    add_headers(response_, reply);
    response_.set(http::field::retry_after, "1");
    response_.keep_alive(false);
    response_.body() = reply.body;
    response_.prepare_payload();
    stream_.expires_after(kLinger);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      if (!error) self->drain();
    });
  }

 private:
  void drain() {
    stream_.async_read_some(asio::buffer(thrown_away_), [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->drain();
    });
  }

  Network& network_;
  beast::tcp_stream stream_;
  http::response<http::string_body> response_;
  std::array<char, 1024> thrown_away_{};
};

}  // namespace

void begin_connection(Network& network, tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::make_shared<Connection>(network, std::move(socket))->read();
}

void begin_refusal(Network& network, tcp::socket socket) {
  std::make_shared<Refusal>(network, std::move(socket))->tell();
}

}  // namespace ridgeline::serve
