#include "sim/serve/guard.h"

#include <gtest/gtest.h>

namespace ridgeline::serve {
namespace {

Request from(const std::string& host, const std::string& origin = "", const std::string& site = "") {
  Request request;
  request.host = host;
  request.origin = origin;
  request.fetch_site = site;
  return request;
}

TEST(Guard, knows_its_own_names_and_no_others) {
  const Guard guard;
  for (const char* host : {"localhost", "localhost:8137", "127.0.0.1:1", "[::1]:8137", "LOCALHOST:80", "127.1.2.3"})
    EXPECT_TRUE(guard.knows_host(host)) << host;
  for (const char* host : {"", "evil.example", "localhost.evil.example:8137", "127.0.0.1.evil.example", "192.168.1.2",
                           "localhost:", "localhost:x", "localhost:123456", "[::1", "[::1]x", "127.0.0.1@evil", ":80"})
    EXPECT_FALSE(guard.knows_host(host)) << host;
}

TEST(Guard, a_named_host_is_known_beside_addresses_in_numbers) {
  const Guard guard{"0.0.0.0", "secret"};
  EXPECT_TRUE(guard.knows_host("192.168.1.2:8137"));
  EXPECT_FALSE(guard.knows_host("rebound.example:8137"));
}

TEST(Guard, pages_of_others_are_refused) {
  const Guard guard;
  EXPECT_EQ(guard.refusal(from("localhost:8137"), ""), "");
  EXPECT_EQ(guard.refusal(from("localhost:8137", "http://localhost:8137", "same-origin"), ""), "");
  for (const char* origin :
       {"http://evil.example", "null", "http://localhost:9", "https://localhost:8137", "http://localhost"})
    EXPECT_NE(guard.refusal(from("localhost:8137", origin), ""), "") << origin;
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_NE(guard.refusal(from("localhost:8137", "", site), ""), "") << site;
}

TEST(Guard, a_token_is_asked_of_every_question) {
  const Guard guard{"127.0.0.1", "0123"};
  Request request = from("127.0.0.1:8137");
  EXPECT_NE(guard.refusal(request, ""), "");
  EXPECT_NE(guard.refusal(request, "012"), "");
  EXPECT_NE(guard.refusal(request, "0124"), "");
  EXPECT_EQ(guard.refusal(request, "0123"), "");
  request.authorization = "Bearer 0123";
  EXPECT_EQ(guard.refusal(request, ""), "");
  request.authorization = "Bearer 9999";  // the header decides
  EXPECT_NE(guard.refusal(request, "0123"), "");
  EXPECT_EQ(new_token().size(), 32u);
  EXPECT_NE(new_token(), new_token());
}

}  // namespace
}  // namespace ridgeline::serve
