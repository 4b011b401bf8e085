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

TEST(Guard, a_port_has_one_to_five_digits) {
  const Guard guard;
  for (const char* port : {":0", ":9", ":00000", ":99999", ":12345", ":5", ":90"})
    EXPECT_TRUE(guard.knows_host(std::string("localhost") + port) && guard.knows_host(std::string("[::1]") + port))
        << port;
  for (const char* port : {":", ":/", "::", ":1:", ":a", ":1a", ":-1", ":000000", "1", ":1 "})
    EXPECT_FALSE(guard.knows_host(std::string("[::1]") + port)) << port;
  EXPECT_FALSE(guard.knows_host("[]"));
  EXPECT_FALSE(guard.knows_host("[]:80"));
}

// A server on all addresses is asked by any of them, in numbers of either kind.
TEST(Guard, addresses_in_numbers_are_those_of_four_and_of_six) {
  const Guard guard{"::", "secret"};
  for (const char* host :
       {"10.0.0.1", "0.0.0.0:9", "[fe80::1]:80", "[2001:DB8::9.9.9.9]", "[::ffff:0:9]", "[::abcdef]"})
    EXPECT_TRUE(guard.knows_host(host)) << host;
  for (const char* host : {"abc", "[abc]", "a.b", "[fe80::g]", "[fe80::1%1]", "10.0.0.x", "", ":80"})
    EXPECT_FALSE(guard.knows_host(host)) << host;
  EXPECT_FALSE(Guard{}.knows_host("10.0.0.1")) << "a server of this machine alone";
  EXPECT_FALSE((Guard{"127.0.0.2", ""}.knows_host("10.0.0.1")));
  EXPECT_TRUE((Guard{"lab.example", ""}.knows_host("lab.example:80"))) << "the name that it was given";
  EXPECT_TRUE((Guard{"lab.example", ""}.knows_host("10.0.0.1")));
}

TEST(Guard, loopback_is_this_machine) {
  for (const char* host : {"localhost", "::1", "127.0.0.1", "127.255.0.9"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "127", "127.", "127.example", "128.0.0.1", "0.0.0.0", "::", "::2", "localhost2"})
    EXPECT_EQ(is_loopback(host), std::string(host) == "127.") << host;
}

TEST(Guard, a_token_differs_in_any_letter) {
  const Guard guard{"127.0.0.1", "abcd"};
  const Request request = from("127.0.0.1:8137");
  EXPECT_EQ(guard.refusal(request, "abcd"), "");
  for (const char* other : {"xbcd", "axcd", "abxd", "abcx", "abcde", "abc", ""})
    EXPECT_EQ(guard.refusal(request, other),
              "the token that the server printed when it started is missing (Authorization: Bearer)")
        << other;
  EXPECT_EQ(guard.refusal(from("evil.example"), "abcd"),
            "the header Host names 'evil.example', which is not this server");
  EXPECT_EQ(guard.refusal(from("localhost", "http://evil.example"), "abcd"),
            "a page of http://evil.example asks; this server answers its own pages alone");
  EXPECT_EQ(guard.refusal(from("localhost", "", "cross-site"), "abcd"),
            "a page of another server asks; this server answers its own pages alone");
  EXPECT_EQ(guard.refusal(from("localhost", "", "same-origin"), "abcd"), "");
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
