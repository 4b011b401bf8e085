// With libFuzzer: `./dev check fuzz requests`.
#include "tests/serve/fuzz_bytes.h"

#include <algorithm>
#include <boost/beast/_experimental/test/stream.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/serve/guard.h"
#include "sim/serve/request_reader.h"
#include "sim/serve/target.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using namespace serve;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr int kMostRead = 64;  // requests or messages of one input

bool has_control_byte(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string broken_reply(error_code error) {
  const std::optional<Reply> reply = reply_to_error(error);
  if (!reply) return "";
  if (reply->status != 400 && reply->status != 413 && reply->status != 431) return "a mistake with another status";
  return nlohmann::json::parse(reply->body, nullptr, false).is_discarded() ? "a mistake that is no JSON" : "";
}

/// What was read of one request; `upgrade`: it goes on as a WebSocket.
std::string broken_request(const HttpRequest& read, bool& upgrade) {
  if (read.body().size() > kMostBodyBytes) return "a body beyond the limit";
  const Request request = request_of(read);
  upgrade = beast::websocket::is_upgrade(read);
  const Guard guard;
  const bool admitted = !is_ambiguous(read) && guard.refusal(request, "").empty();
  if (admitted && (has_control_byte(request.host) || has_control_byte(request.origin)))
    return "a control character was admitted";
  if (admitted && read.count(beast::http::field::host) > 1) return "two hosts were admitted";
  std::string lower = request.host;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto names = [&](const char* own) { return lower.find(own) != std::string::npos; };
  if (admitted && !names("localhost") && !names("127.") && !names("[::1]"))
    return "a stranger was admitted: " + request.host;
  try {
    const Target target = parse_target(request.target);
    if (has_control_byte(target.path)) return "a control character in a path";
    if (target.parameters.size() > kMostParameters) return "too many parameters";
  } catch (const UserError&) {}
  return "";
}

/// Reads requests until one is broken or an upgrade; `rest` are the bytes that are left then.
std::string read_requests(std::string_view& rest, bool& upgrade) {
  for (int i = 0; i < kMostRead && !rest.empty() && !upgrade; ++i) {
    RequestParser parser;
    set_limits(parser);
    error_code error;
    while (!parser.is_done() && !rest.empty()) {
      if (parser.is_header_done()) {
        if (parser.chunked()) return "";  // refused before its body is read
        parser.eager(true);
      }
      const std::size_t used = parser.put(boost::asio::buffer(rest.data(), rest.size()), error);
      rest.remove_prefix(used);
      if (error == beast::http::error::need_more) {
        error = {};
        if (used == 0) break;
      }
      if (error) return broken_reply(error);
    }
    if (!parser.is_done()) return "";
    if (std::string broken = broken_request(parser.get(), upgrade); !broken.empty()) return broken;
  }
  return "";
}

std::string read_frames(std::string_view frames) {
  boost::asio::io_context io;
  beast::test::stream wire(io);
  wire.append(beast::string_view(frames.data(), frames.size()));
  beast::test::stream other = beast::test::connect(wire);
  other.close();
  beast::websocket::stream<beast::test::stream&> socket(wire);
  socket.read_message_max(kMostBodyBytes);
  HttpRequest upgrade{beast::http::verb::get, "/api/socket", 11};
  upgrade.set(beast::http::field::host, "localhost");
  upgrade.set(beast::http::field::upgrade, "websocket");
  upgrade.set(beast::http::field::connection, "upgrade");
  upgrade.set(beast::http::field::sec_websocket_version, "13");
  upgrade.set(beast::http::field::sec_websocket_key, "dGhlIHNhbXBsZSBub25jZQ==");
  error_code error;
  socket.accept(upgrade, error);
  for (int i = 0; i < kMostRead; ++i) {
    beast::flat_buffer buffer;
    socket.read(buffer, error);
    if (error) return "";
    if (buffer.size() > kMostBodyBytes) return "a message beyond the limit";
    const SocketMessage message = read_message(beast::buffers_to_string(buffer.data()), socket.got_text());
    const int meant = (message.cancel >= 0) + (message.id >= 0) + !message.mistake.empty();
    if (meant != 1) return "a message that is not one of a question, its end and a mistake";
  }
  return "";
}

}  // namespace

std::string fuzz_bytes(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  bool upgrade = false;
  if (rest.starts_with('F')) {
    rest.remove_prefix(1);
    return read_frames(rest);
  }
  if (std::string broken = read_requests(rest, upgrade); !broken.empty()) return broken;
  return upgrade ? read_frames(rest) : "";
}

}  // namespace ridgeline

#ifdef RIDGELINE_FUZZ_TARGET
#include <cstdio>
#include <cstdlib>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken = ridgeline::fuzz_bytes(data, size);
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
#endif
