// A connection from its first byte to its last: what is said whole, how long each part may take, who makes room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "sim/serve/request_reader.h"
#include "tests/serve/served_client.h"

namespace ridgeline::serve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int ms_of(const std::function<void()>& something) {
  const auto begin = std::chrono::steady_clock::now();
  something();
  return static_cast<int>(std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin).count());
}
void pause_ms(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

const std::string kReplyHead = reply_head();

TEST(Connection, aReplyIsWhole) {
  const OwnServer server;
  const std::string body = R"({"error":{"message":"there is nothing at /api/modles; did you mean /api/models?"}})"
                           "\n";
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  EXPECT_EQ(server.said(request("/api/modles")),
            "HTTP/1.1 404 Not Found\r\n" + kReplyHead + "Connection: close\r\n" + length + "\r\n" + body);
  EXPECT_EQ(server.said(request("/api/modles", "", "", "HEAD")),
            "HTTP/1.1 404 Not Found\r\n" + kReplyHead + "Connection: close\r\n" + length + "\r\n");
  EXPECT_THAT(server.said(request("/api/predict")), HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_THAT(server.said(request("/api/hosts", "", "{}", "PUT")), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  const Client stays(server.port());
  stays.send(kept("/api/modles"));
  EXPECT_EQ(stays.receive(body), "HTTP/1.1 404 Not Found\r\n" + kReplyHead + length + "\r\n" + body);
}

TEST(Connection, staysOpenUnlessItIsAskedToClose) {
  const OwnServer server;
  const Client closing(server.port()), staying(server.port()), old(server.port());
  const int took = ms_of([&] {
    closing.send(request("/api/hosts"));
    EXPECT_THAT(closing.receive(), StartsWith("HTTP/1.1 200"));
    old.send("GET /api/hosts HTTP/1.0\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(old.receive(), StartsWith("HTTP/1.1 200"));
  });
  EXPECT_LT(took, 900) << "the end is said with the answer, not a second later";
  staying.send(kept("/api/hosts"));
  EXPECT_THAT(staying.receive("]"), StartsWith("HTTP/1.1 200"));
  EXPECT_FALSE(staying.ends_within(1300));
  // Bodies are of their own request, and a HEAD of one leaves no mark on the next.
  staying.send(kept("/api/compare", "[]"));
  EXPECT_THAT(staying.receive("}}\n"), HasSubstr("expected {\\\"sides\\\""));
  staying.send(kept("/api/compare", "nothing"));
  EXPECT_THAT(staying.receive("}}\n"), HasSubstr("the body is no JSON"));
  staying.send("HEAD /api/hosts HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(staying.receive("\r\n\r\n").ends_with("\r\n\r\n"));
  staying.send(kept("/api/hosts"));
  EXPECT_THAT(staying.receive("]"), HasSubstr("\r\n\r\n["));
}

TEST(Connection, theFirstRequestHasAnotherTimeThanThoseAfterIt) {
  ServerOptions options;
  options.header_time = milliseconds(200), options.idle_time = milliseconds(1200);
  const OwnServer patient(options);
  std::swap(options.header_time, options.idle_time);
  const OwnServer hasty(options);
  const Client silent(patient.port()), asked(patient.port()), slow(hasty.port()), asking(hasty.port());
  asked.send(kept("/api/hosts"));
  asking.send(kept("/api/hosts"));
  EXPECT_THAT(asked.receive("]"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(asking.receive("]"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(silent.ends_within(700));
  EXPECT_TRUE(asking.ends_within(700));
  EXPECT_FALSE(slow.ends_within(100));
  EXPECT_FALSE(asked.ends_within(100));
  EXPECT_TRUE(slow.ends_within(2500));
  EXPECT_TRUE(asked.ends_within(2500));
}

TEST(Connection, aBodyHasATimeOfItsOwn) {
  const std::string head = "POST /api/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n";
  ServerOptions options;
  options.header_time = milliseconds(300), options.body_time = milliseconds(3000);
  const OwnServer patient(options);
  const Client late(patient.port());
  late.send(head + "[");
  pause_ms(700);
  late.send("]");
  EXPECT_THAT(late.receive("}}\n"), HasSubstr("expected {"));
  options.header_time = milliseconds(5000), options.body_time = milliseconds(200);
  const OwnServer hasty(options);
  const Client half(hasty.port());
  half.send(head + "[");
  EXPECT_TRUE(half.ends_within(2500));
}

TEST(Connection, anAnswerMayTakeLongerThanARequest) {
  ServerOptions options;
  options.header_time = options.body_time = options.idle_time = milliseconds(50);
  const OwnServer server(options);
  const Client client(server.port());
  int took = 0;
  for (int points = 8; points < 1000 && took < 200; points *= 2)
    took = ms_of([&] {
      EXPECT_THAT(server.said(request("/api/sweep", "", sweep_body(points), "POST")), StartsWith("HTTP/1.1 200"));
    });
  EXPECT_GE(took, 200);
}

TEST(Connection, whoWaitsForTheWordToGoOnIsTold) {
  const OwnServer server;
  const Client client(server.port());
  client.send("POST /api/compare HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("[]");
  EXPECT_THAT(client.receive("}}\n"), StartsWith("HTTP/1.1 400"));
  client.send("POST /api/compare HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n") << "in whichever letters";
  client.send("[]");
  EXPECT_THAT(client.receive("}}\n"), StartsWith("HTTP/1.1 400"));
  client.send("POST /api/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive("\r\n", 200), "") << "who does not ask is not told";
  client.send("[]");
  EXPECT_THAT(client.receive("}}\n"), StartsWith("HTTP/1.1 400"));
}

// More than the buffers between the two hold.
TEST(Connection, whoDoesNotReadIsLeftAfterTheTimeForWriting) {
  ServerOptions options;
  options.write_time = milliseconds(200);
  const OwnServer server(options);
  const Client first(server.port());
  first.send(request("/api/microkernels"));
  const std::size_t one = first.receive("", 120'000).size();  // worked out, which takes long under a sanitizer
  ASSERT_GT(one, 0u) << "left before it was answered";
  const std::size_t count = 16'000'000 / one + 1;
  const auto received_after = [&](int ms) {
    const Client client(server.port(), 4096);
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += kept("/api/microkernels");
    client.send(all);
    pause_ms(ms);
    return client.receive("", 500).size();
  };
  // A slow machine needs longer to fill what the kernel keeps for the client.
  bool left = false;
  for (const int ms : {1000, 4000, 12000}) left = left || received_after(ms) < count * one * 3 / 4;
  EXPECT_TRUE(left);
}

// What was said arrives although the client is still talking, and the end of it as well.
TEST(Connection, aRefusedRequestIsToldSoThoughItGoesOn) {
  const OwnServer server;
  for (const std::string& begin :
       {std::string("POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"),
        std::string("POST /api/fit HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9999\r\n\r\n"),
        std::string("no request\r\n\r\n")}) {
    const Client client(server.port());
    client.send(begin);
    for (int i = 0; i < 40; ++i) client.send(std::string(50'000, ' '));
    pause_ms(100);
    client.send(std::string(50'000, ' '));
    pause_ms(50);
    std::string said;
    const int took = ms_of([&] { said = client.receive(); });
    EXPECT_THAT(said, StartsWith("HTTP/1.1 4"));
    EXPECT_TRUE(said.ends_with("}}\n")) << said;
    EXPECT_LT(took, 600);
  }
}

// A second after its last word the server does not listen any more.
TEST(Connection, whoGoesOnTalkingIsLeftAfterASecond) {
  const OwnServer server;
  const Client client(server.port());
  client.send("no request\r\n\r\n");
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 400"));
  EXPECT_TRUE(client.send("more"));
  pause_ms(300);
  EXPECT_TRUE(client.send("more"));
  pause_ms(100);
  EXPECT_TRUE(client.send("more")) << "still there";
  pause_ms(1400);
  client.send("more");
  pause_ms(100);
  EXPECT_FALSE(client.send("more"));
}

TEST(Connection, whoHangsUpGivesTheQuestionUp) {
  ServerOptions options;
  options.waiting = 1, options.workers = 1;
  const OwnServer server(options);
  Client client(server.port());
  client.send(kept("/api/sweep", endless_sweep()));
  pause_ms(100);
  const std::string study = request("/api/sweep", "", sweep_body(2), "POST");
  EXPECT_THAT(server.said(study), StartsWith("HTTP/1.1 503"));
  client.hang_up();
  bool answered = false;
  for (int i = 0; i < 20 && !answered; ++i) {
    pause_ms(50);
    answered = server.said(study).starts_with("HTTP/1.1 200");
  }
  EXPECT_TRUE(answered);
}

TEST(Connection, whoAsksMoreMeanwhileDoesNotHangUp) {
  const OwnServer server;
  const Client client(server.port());
  client.send(kept("/api/sweep", sweep_body(60)));
  pause_ms(20);
  client.send(kept("/api/hosts"));
  const std::string said = client.receive("\r\n\r\n[");
  EXPECT_THAT(said, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(said, HasSubstr("\"points\""));
  EXPECT_NE(said.find("HTTP/1.1 200", 1), said.npos) << "the second answer";
}

}  // namespace
}  // namespace ridgeline::serve
