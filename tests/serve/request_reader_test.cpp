#include "sim/serve/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>

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

TEST(RequestReader, whoever_is_gone_is_told_nothing) {
  namespace http = boost::beast::http;
  for (const boost::system::error_code& gone :
       {boost::system::error_code(http::error::end_of_stream), boost::system::error_code(http::error::partial_message),
        boost::system::error_code(boost::beast::error::timeout),
        boost::system::error_code(boost::asio::error::operation_aborted),
        boost::system::error_code(boost::asio::error::connection_reset),
        boost::system::error_code(boost::asio::error::eof)})
    EXPECT_FALSE(reply_to_error(gone)) << gone.message();
  const auto told = [](http::error error) {
    const std::optional<Reply> reply = reply_to_error(error);
    return reply ? std::to_string(reply->status) + " " + reply->body : "nothing";
  };
  EXPECT_EQ(told(http::error::header_limit), "431 {\"error\":{\"message\":\"the headers are longer than 8 KiB\"}}\n");
  EXPECT_EQ(told(http::error::body_limit), "413 {\"error\":{\"message\":\"the body is larger than 1 MiB\"}}\n");
  EXPECT_EQ(told(http::error::bad_method), "400 {\"error\":{\"message\":\"this is no HTTP request: bad method\"}}\n");
}

TEST(RequestReader, numbers_of_messages_are_whole_and_of_thirty_one_bits) {
  for (const char* number : {"0", "1", "2147483647"}) {
    const std::string id = number;
    EXPECT_EQ(std::to_string(read_message("{\"cancel\":" + id + "}", true).cancel), id);
    const SocketMessage asked = read_message("{\"target\":\"/x\",\"id\":" + id + "}", true);
    EXPECT_EQ(std::to_string(asked.id), id);
    EXPECT_EQ(asked.cancel, -1);
    EXPECT_EQ(asked.mistake, "");
  }
  for (const char* number : {"2147483648", "-1", "1.0", "\"1\"", "null", "true", "[1]"}) {
    const std::string id = number;
    EXPECT_EQ(read_message("{\"cancel\":" + id + "}", true).mistake, "expected id, a whole number, and target, a text");
    EXPECT_EQ(read_message("{\"target\":\"/x\",\"id\":" + id + "}", true).mistake,
              "expected id, a whole number, and target, a text");
  }
  EXPECT_EQ(read_message(R"({"id":1})", true).mistake, "expected id, a whole number, and target, a text");
  EXPECT_EQ(read_message(R"({"cancel":0,"id":1,"target":"/x"})", true).cancel, 0) << "giving up comes first";
  EXPECT_EQ(read_message(R"({"cancel":0,"id":1,"target":"/x"})", true).id, -1);
  EXPECT_EQ(read_message("[]", true).mistake, "expected an object with id and target, or cancel");
}

TEST(RequestReader, a_body_is_a_text_or_json) {
  const auto body = [](const std::string& text) {
    const SocketMessage message = read_message(R"({"id":1,"target":"/x","body":)" + text + "}", true);
    EXPECT_TRUE(message.has_body);
    return message.body;
  };
  EXPECT_EQ(body(R"("a: 1\nb: 2")"), "a: 1\nb: 2");
  EXPECT_EQ(body(R"({"a":[1,null]})"), R"({"a":[1,null]})");
  EXPECT_EQ(body("null"), "null");
  EXPECT_EQ(body("\"\""), "");
}

// The library that reads JSON goes down one call a level: what nests too deep is refused before it is read.
TEST(RequestReader, messages_nest_no_deeper_than_files) {
  const auto nested = [](int levels, const std::string& open, const std::string& inner, const std::string& close) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += inner;
    for (int i = 0; i < levels; ++i) text += close;
    return text;
  };
  for (const int levels : {65, 1000, 88'000, 400'000}) {
    for (const std::string& deep : {nested(levels, "[", "", "]"), nested(levels, R"({"a":)", "1", "}")}) {
      EXPECT_THAT(read_message(deep, true).mistake, HasSubstr("nested more than 64 levels deep"));
      EXPECT_THAT(read_message(R"({"id":1,"target":"/api/predict","body":)" + deep + "}", true).mistake,
                  HasSubstr("nested more than 64 levels deep"));
    }
  }
  const SocketMessage message = read_message(R"({"id":1,"target":"/","body":)" + nested(63, "[", "", "]") + "}", true);
  EXPECT_EQ(message.mistake, "");
  EXPECT_EQ(message.body, nested(63, "[", "", "]"));
}

TEST(RequestReader, a_header_twice_is_ambiguous_where_it_decides) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (const char* header : {"Host", "Origin", "Authorization"})
    EXPECT_TRUE(
        is_ambiguous(read("GET / HTTP/1.1\r\n" + std::string(header == std::string("Host") ? "" : "Host: a\r\n") +
                          header + ": x\r\n" + header + ": x\r\n\r\n")
                         .first))
        << header;
  EXPECT_FALSE(is_ambiguous(read(begin + "Origin: x\r\nAuthorization: y\r\nX: 1\r\nX: 2\r\n\r\n").first));
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
