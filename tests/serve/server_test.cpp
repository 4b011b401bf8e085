// The server at its socket, met as strangers meet it: broken, oversized, slow and too many requests.
#include "sim/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "sim/serve/request_reader.h"
#include "tests/serve/served_client.h"

namespace ridgeline::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunningServer {
 public:
  explicit RunningServer(ServerOptions options = {})
      : server_(api_, quick(options)), thread_([this] { server_.run(); }) {}
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] std::string said(const std::string& text) const {
    const Client client(port());
    client.send(text);
    return client.receive();
  }
  [[nodiscard]] bool answers() const { return said(request("/api/hosts")).starts_with("HTTP/1.1 200"); }

 private:
  static ServerOptions quick(ServerOptions options) {
    options.port = 0;
    options.until_signal = false;
    options.header_time = options.body_time = options.idle_time = std::chrono::milliseconds(400);
    return options;
  }
  Api api_{{.tool = "test", .most_sweep_points = 100}};
  Server server_;
  std::thread thread_;
};

TEST(Server, answers_one_request_after_the_other_on_a_connection) {
  const RunningServer server;
  const Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /api/hosts HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string said = client.receive("]");
    EXPECT_THAT(said, StartsWith("HTTP/1.1 200 OK"));
    EXPECT_THAT(said, HasSubstr("Content-Security-Policy: default-src 'none'"));
  }
  const std::string head = server.said(request("/api/hosts", "", "", "HEAD"));
  EXPECT_THAT(head, HasSubstr("Content-Length: "));
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST(Server, broken_requests_are_told_so) {
  const RunningServer server;
  for (const char* text :
       {"\x16\x03\x01\x02", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /api/hosts HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        "POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"}) {
    const std::string said = server.said(text);
    EXPECT_TRUE(said.empty() || said.starts_with("HTTP/1.1 400")) << text << said;
  }
  EXPECT_THAT(server.said("GET /api/hosts HTTP/1.1\r\nHost: evil.example\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(server.said(request("/api/hosts", "Origin: http://evil.example\r\n")), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(server.said(request("/api/hosts", "Sec-Fetch-Site: cross-site\r\n")), StartsWith("HTTP/1.1 403"));
  EXPECT_TRUE(server.answers());
}

TEST(Server, requests_that_are_too_large_are_refused) {
  const RunningServer server;
  EXPECT_THAT(server.said(request("/api/hosts", "X: " + std::string(kMostHeaderBytes, 'x') + "\r\n")),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(server.said(request("/api/hosts?" + std::string(2 * kMostHeaderBytes, 'x'))), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(server.said("POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(server.said(request("/api/fit", "", std::string(kMostBodyBytes, ' '), "POST")),
              StartsWith("HTTP/1.1 400"));
  EXPECT_TRUE(server.answers());
}

TEST(Server, bodies_in_chunks_are_refused_whatever_they_hold) {
  const RunningServer server;
  const std::string head = "POST /api/fit HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string large = head;
  for (int i = 0; i < 20; ++i) large += "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
  for (const std::string& text : {head + "2\r\n{}\r\n0\r\n\r\n", head + "zz\r\n", head + "\r0\n\r\n", large}) {
    const std::string said = server.said(text);
    EXPECT_THAT(said, StartsWith("HTTP/1.1 411"));
    EXPECT_THAT(said, HasSubstr("Content-Length"));
  }
  EXPECT_TRUE(server.answers());
}

TEST(Server, slow_ones_are_left_after_their_time) {
  const RunningServer server;
  const Client silent(server.port()), dripping(server.port()), halfway(server.port());
  halfway.send("POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20 && dripping.send(i == 0 ? "GET /" : "a"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(silent.receive(), "");
  EXPECT_EQ(dripping.receive(), "");
  EXPECT_EQ(halfway.receive(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_TRUE(server.answers());
}

TEST(Server, a_thousand_connections_are_answered_or_refused) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2100) GTEST_SKIP() << "too few descriptors: " << files.rlim_cur;
  ServerOptions options;
  options.connections = 32;
  const RunningServer server(options);
  std::vector<Client> clients;
  for (int i = 0; i < 1000; ++i) clients.emplace_back(server.port());
  EXPECT_TRUE(server.answers());  // while those who say nothing hold all places
  int refused = 0, left = 0;
  for (const Client& client : clients) {
    ASSERT_TRUE(client.connected());
    const std::string said = client.receive();
    if (said.starts_with("HTTP/1.1 503")) ++refused;
    else if (said.empty()) ++left;  // had a place and said nothing
  }
  EXPECT_EQ(refused + left, 1000);
  EXPECT_GE(refused, 800);
  EXPECT_TRUE(server.answers());
}

TEST(Server, a_socket_answers_with_progress_and_gives_up_when_told) {
  const RunningServer server;
  const Client client(server.port());
  client.send(upgrade(""));
  EXPECT_THAT(client.receive("\r\n\r\n"), StartsWith("HTTP/1.1 101"));
  client.send(frame(1, R"({"id":1,"target":"/api/hosts"})"));
  EXPECT_THAT(client.receive("]"), HasSubstr(R"({"id":1,"status":200,"answer":[)"));
  const std::string scenario =
      R"({"hardware":"nvidia-t4","model":"bert-base","training":{"micro_batch":1,"sequence_length":64,"precision":"fp32"}})";
  client.send(frame(1, R"({"id":2,"target":"/api/sweep","body":{"scenario":)" + scenario +
                           R"(,"axes":{"training.micro_batch":{"range":[1,90],"step":1}}}})"));
  client.send(frame(1, R"({"cancel":2})"));
  EXPECT_THAT(client.receive("\"status\""), HasSubstr(R"("id":2,"status":409)"));
  client.send(frame(1, R"({"id":3,"target":"/api/predict","body":)" + scenario + "}"));
  EXPECT_THAT(client.receive("\"notes\""), HasSubstr(R"({"id":3,"status":200,"answer":{"schema")"));
}

TEST(Server, bad_frames_end_the_socket_alone) {
  const RunningServer server;
  EXPECT_THAT(server.said(upgrade("Origin: http://evil.example\r\n")), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(server.said(upgrade("", "/api/predict")), StartsWith("HTTP/1.1 404"));
  const std::vector<std::string> frames{frame(1, "not json"),
                                        frame(1, "{}"),
                                        frame(1, "[1]"),
                                        frame(1, R"({"id":-1,"target":3})"),
                                        frame(2, "\x01\x02"),
                                        frame(1, "unmasked", false),
                                        frame(3, "reserved"),
                                        frame(1, "\xff\xfe"),
                                        std::string("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 10),
                                        std::string("\x09\xfe\xff\xff", 4),
                                        frame(8, ""),
                                        frame(9, std::string(126, 'p')),
                                        frame(1, std::string(60000, '['))};
  for (const std::string& one : frames) {
    const Client client(server.port());
    client.send(upgrade(""));
    ASSERT_THAT(client.receive("\r\n\r\n"), StartsWith("HTTP/1.1 101"));
    client.send(one);
    (void)client.receive("}", 200);
  }
  EXPECT_TRUE(server.answers());
}

TEST(Server, changed_bytes_of_requests_end_nothing) {
  const RunningServer server;
  std::mt19937_64 random(7);
  const std::vector<std::string> seeds{request("/api/hosts"), request("/api/models", "Origin: http://localhost\r\n"),
                                       request("/api/kernels?hardware=nvidia-t4", "", "{\"op\":\"no\"}\n", "POST"),
                                       upgrade("") + frame(1, "{}")};
  for (int i = 0; i < 300; ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (std::size_t left = 1 + random() % 6; left > 0; --left)
      text[random() % text.size()] = static_cast<char>(random());
    const Client client(server.port());
    client.send(text);
    if (i % 4 == 0) (void)client.receive("", 5);
  }
  EXPECT_TRUE(server.answers());
}

TEST(Server, ends_while_questions_are_being_answered) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const RunningServer server;
    const Client client(server.port());
    const std::string scenario =
        R"({"hardware":"nvidia-t4","model":"gpt2-xl","training":{"micro_batch":1,"sequence_length":64,"precision":"fp32"}})";
    client.send(request(
        "/api/sweep", "",
        R"({"scenario":)" + scenario + R"(,"axes":{"training.micro_batch":{"range":[1,100],"step":1}}})", "POST"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace ridgeline::serve
