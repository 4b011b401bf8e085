#include "sim/serve/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::serve {
namespace {

using ::testing::HasSubstr;

/// What becomes of these bytes: the request, or the error that ended it.
std::pair<HttpRequest, boost::system::error_code> read(std::string_view bytes) {
  RequestParser parser;
  set_limits(parser);
  parser.eager(true);
  boost::system::error_code error;
  while (!parser.is_done() && !bytes.empty() && !error) {
    bytes.remove_prefix(parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error));
    if (error == boost::beast::http::error::need_more && !bytes.empty()) error = {};
  }
  if (error == boost::beast::http::error::need_more) error = {};
  return {parser.release(), error};
}

TEST(RequestReader, headers_that_decide_are_kept_and_doubled_ones_seen) {
  const HttpRequest one =
      read(
          "POST /api/fit?a=b HTTP/1.1\r\nHost: localhost\r\nOrigin: http://x\r\nSec-Fetch-Site: none\r\n"
          "Authorization: Bearer 7\r\nContent-Length: 2\r\n\r\n{}")
          .first;
  const Request request = request_of(one);
  EXPECT_EQ(request.method + request.target, "POST/api/fit?a=b");
  EXPECT_EQ(request.host + request.origin + request.fetch_site + request.authorization,
            "localhosthttp://xnoneBearer 7");
  EXPECT_FALSE(is_ambiguous(one));
  EXPECT_TRUE(is_ambiguous(read("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").first));
  EXPECT_TRUE(is_ambiguous(read("GET / HTTP/1.1\r\nX: y\r\n\r\n").first));
  EXPECT_FALSE(is_ambiguous(read("GET / HTTP/1.0\r\nX: y\r\n\r\n").first));
}

TEST(RequestReader, what_is_too_large_or_no_request_is_told) {
  const auto status = [](const std::string& bytes) {
    const auto error = read(bytes).second;
    const auto reply = error ? reply_to_error(error) : std::nullopt;
    return reply ? reply->status : 0;
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(kMostHeaderBytes, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"), 413);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n"), 0);
  EXPECT_EQ(status("no request\r\n\r\n"), 400);
  EXPECT_FALSE(reply_to_error(boost::beast::http::error::end_of_stream));
}

TEST(RequestReader, messages_ask_or_give_up_or_are_told_their_mistake) {
  const SocketMessage question = read_message(R"({"id": 7, "target": "/api/sweep", "body": {"a": 1}})", true);
  EXPECT_EQ(question.id, 7);
  EXPECT_EQ(question.target + question.body, R"(/api/sweep{"a":1})");
  EXPECT_TRUE(question.has_body && question.mistake.empty());
  EXPECT_FALSE(read_message(R"({"id": 7, "target": "/api/hosts"})", true).has_body);
  EXPECT_EQ(read_message(R"({"cancel": 7})", true).cancel, 7);
  for (const char* bad : {"", "[1]", "{}", R"({"id": -1, "target": "/"})", R"({"id": 1.5, "target": "/"})",
                          R"({"id": 1, "target": 2})", R"({"id": 99999999999, "target": "/"})"})
    EXPECT_THAT(read_message(bad, true).mistake, HasSubstr("expected")) << bad;
  EXPECT_THAT(read_message(R"({"cancel": 7})", false).mistake, HasSubstr("expected an object"));
}

}  // namespace
}  // namespace ridgeline::serve
