// What strangers send, before anybody believes it: bytes to a request of HTTP within limits, and messages of a
// WebSocket to what they ask. Knows no socket, so that a fuzzer reads with it too.
//
// Tested by tests/serve/request_reader_test.cpp and tests/serve/fuzz_bytes.cpp.
#pragma once

#include <boost/beast/http.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/serve/request.h"

namespace ridgeline::serve {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

inline constexpr std::uint32_t kMostHeaderBytes = 8 << 10;
inline constexpr std::uint64_t kMostBodyBytes = 1 << 20;

/// Before the first byte: how much a request may send.
void set_limits(RequestParser& parser);
/// Method, target and the headers that decide who may ask; the body is left where it is.
Request request_of(const HttpRequest& request);
/// Whether a header that decides something stands there twice: which one counts is anybody's guess.
bool is_ambiguous(const HttpRequest& request);
/// What to say of a request that could not be read; nothing where the other side is gone or took too long.
std::optional<Reply> reply_to_error(boost::system::error_code error);

/// A message of a WebSocket.
struct SocketMessage {
  std::int64_t id = -1;          ///< of a question
  std::int64_t cancel = -1;      ///< number of the question that is given up
  std::string target{}, body{};  ///< of a question
  bool has_body = false;         ///< asked with POST
  std::string mistake{};         ///< what to answer to a message that is neither
};

/// `text`: what came, which need be no text (`is_text`) and no JSON.
SocketMessage read_message(const std::string& text, bool is_text);

}  // namespace ridgeline::serve
