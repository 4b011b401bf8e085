#include "sim/serve/request_reader.h"

#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>
#include <nlohmann/json.hpp>

#include "sim/input/json_depth.h"
#include "sim/units/user_error.h"

namespace ridgeline::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

std::string text_of_header(const HttpRequest& request, http::field field) { return std::string(request[field]); }

Reply refusal(int status, const std::string& message) {
  const nlohmann::json said{{"error", {{"message", message}}}};
  return {.status = status, .body = said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace

void set_limits(RequestParser& parser) {
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(kMostBodyBytes);
}

Request request_of(const HttpRequest& request) {
  return {.method = std::string(request.method_string()),
          .target = std::string(request.target()),
          .body = {},
          .host = text_of_header(request, http::field::host),
          .origin = text_of_header(request, http::field::origin),
          .fetch_site = std::string(request["Sec-Fetch-Site"]),
          .authorization = text_of_header(request, http::field::authorization)};
}

bool is_ambiguous(const HttpRequest& request) {
  for (const http::field field : {http::field::host, http::field::origin, http::field::authorization})
    if (request.count(field) > 1) return true;
  return request.version() == 11 && request.count(http::field::host) == 0;
}

std::optional<Reply> reply_to_error(boost::system::error_code error) {
  if (error == http::error::end_of_stream || error == beast::error::timeout ||
      error == asio::error::operation_aborted || error == asio::error::connection_reset || error == asio::error::eof ||
      error == http::error::partial_message)
    return std::nullopt;
  if (error == http::error::header_limit) return refusal(431, "the headers are longer than 8 KiB");
  if (error == http::error::body_limit) return refusal(413, "the body is larger than 1 MiB");
  return refusal(400, "this is no HTTP request: " + error.message());
}

SocketMessage read_message(const std::string& text, bool is_text) {
  nlohmann::json said;
  if (is_text) {
    try {
      check_json_depth(text);
    } catch (const UserError& error) {
      return {.mistake = error.what()};
    }
    said = nlohmann::json::parse(text, nullptr, false);
  }
  if (!said.is_object()) return {.mistake = "expected an object with id and target, or cancel"};
  const auto number = [&](const char* key) -> std::int64_t {
    const auto found = said.find(key);
    return found != said.end() && found->is_number_unsigned() && *found <= INT32_MAX ? found->get<std::int64_t>() : -1;
  };
  SocketMessage message;
  message.cancel = number("cancel");
  if (message.cancel >= 0) return message;
  message.id = number("id");
  const auto target = said.find("target");
  if (message.id < 0 || target == said.end() || !target->is_string())
    return {.mistake = "expected id, a whole number, and target, a text"};
  message.target = *target;
  if (const auto body = said.find("body"); body != said.end()) {
    message.has_body = true;
    message.body = body->is_string() ? body->get<std::string>() : body->dump();
  }
  return message;
}

}  // namespace ridgeline::serve
