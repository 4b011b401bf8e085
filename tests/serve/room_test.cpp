// As many connections and questions as a server takes, one more, and what ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "sim/units/user_error.h"
#include "tests/serve/served_client.h"

namespace ridgeline::serve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void wait_ms(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }
bool answered_on(const Client& client) {
  client.send(kept("/api/hosts"));
  return client.receive("]").starts_with("HTTP/1.1 200");
}
constexpr const char* kFull = "as many connections as this server takes are open; try again";

// Of two places both are taken by who says nothing: who waits longest makes room.
TEST(Room, whoSaysNothingMakesRoomForWhoComesLater) {
  ServerOptions options;
  options.connections = 2;
  const OwnServer server(options);
  const Client first(server.port());
  wait_ms(30);
  const Client second(server.port());
  wait_ms(30);
  EXPECT_FALSE(first.ends_within(50)) << "there is room for two";
  const Client third(server.port());
  EXPECT_TRUE(answered_on(third));
  const std::string said = first.receive();
  EXPECT_THAT(said, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(said, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(said, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(said, HasSubstr(kFull));
  EXPECT_TRUE(answered_on(second)) << "it keeps its place";
  EXPECT_TRUE(answered_on(third));
  // Both have asked, and wait: the second has waited longer since.
  const Client fourth(server.port());
  EXPECT_TRUE(answered_on(fourth));
  EXPECT_THAT(second.receive(), HasSubstr(kFull));
}

// Who has sent half of a question has said nothing yet.
TEST(Room, halfAQuestionKeepsNoPlace) {
  ServerOptions options;
  options.connections = 1;
  const OwnServer server(options);
  const Client half(server.port());
  half.send("POST /api/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n[");
  wait_ms(50);
  const Client next(server.port());
  EXPECT_TRUE(answered_on(next));
  EXPECT_THAT(half.receive(), HasSubstr(kFull));
}

TEST(Room, whoseQuestionIsBeingAnsweredKeepsTheirPlace) {
  ServerOptions options;
  options.connections = 2;
  const OwnServer server(options);
  Client first(server.port()), second(server.port());
  first.send(kept("/api/sweep", endless_sweep()));
  second.send(kept("/api/sweep", endless_sweep()));
  wait_ms(100);
  const Client third(server.port());
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = third.receive();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(700)) << "the end is said at once";
  const std::string body = std::string(R"({"error":{"message":")") + kFull + "\"}}\n";
  EXPECT_EQ(said, "HTTP/1.1 503 Service Unavailable\r\n" + reply_head() +
                      "Retry-After: 1\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n\r\n" + body);
  first.hang_up();
  bool answered = false;
  for (int i = 0; i < 20 && !answered; ++i) {
    wait_ms(50);
    answered = server.answers();
  }
  EXPECT_TRUE(answered) << "there is a place again";
}

TEST(Room, whoIsRefusedIsHeardOutForASecondAndThenLeft) {
  ServerOptions options;
  options.connections = 1;
  const OwnServer server(options);
  const Client first(server.port());
  first.send(kept("/api/sweep", endless_sweep()));
  wait_ms(100);
  const Client second(server.port());
  for (int i = 0; i < 20; ++i) second.send(std::string(50'000, ' '));
  wait_ms(100);
  EXPECT_THAT(second.receive(), HasSubstr(kFull)) << "though it talks without an end";
  EXPECT_TRUE(second.send("more"));
  wait_ms(1400);
  second.send("more");
  wait_ms(100);
  EXPECT_FALSE(second.send("more"));
}

// Two are taken, of which one waits for the only worker; the third is told so and asks again later.
TEST(Room, questionsThatWaitAreCounted) {
  ServerOptions options;
  options.waiting = 2, options.workers = 1;
  const OwnServer server(options);
  Client first(server.port());
  const Client second(server.port());
  first.send(kept("/api/sweep", endless_sweep()));
  wait_ms(50);
  second.send(kept("/api/sweep", sweep_body(2)));
  EXPECT_EQ(second.receive("]", 300), "") << "the worker is busy";
  const std::string third = server.said(request("/api/sweep", "", sweep_body(2), "POST"));
  EXPECT_THAT(third, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(third, HasSubstr("as many questions as this server takes are waiting; ask again"));
  first.hang_up();
  EXPECT_THAT(second.receive("]"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(server.answers());
}

TEST(Room, aSecondWorkerAnswersBesideTheFirst) {
  ServerOptions options;
  options.workers = 2;
  const OwnServer server(options);
  const Client first(server.port());
  first.send(kept("/api/sweep", endless_sweep()));
  wait_ms(50);
  EXPECT_TRUE(server.answers());
}

TEST(Room, whenItEndsAllConnectionsDoAndNobodyComesIn) {
  auto server = std::make_unique<OwnServer>();
  const Client silent(server->port()), asking(server->port()), socket(server->port());
  asking.send(kept("/api/sweep", endless_sweep()));
  socket.send(upgrade(""));
  EXPECT_THAT(socket.receive("\r\n\r\n"), StartsWith("HTTP/1.1 101"));
  socket.send(frame(1, R"({"id":1,"target":"/api/sweep","body":)" + endless_sweep() + "}"));
  wait_ms(100);
  const auto begin = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  for (const Client* one : {&silent, &asking, &socket}) {
    (void)one->receive("", 100);
    EXPECT_TRUE(one->ends_within(300));
  }
  EXPECT_FALSE(Client(server->port()).connected());
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << "no question is answered to its end";
}

TEST(Room, signalsEndIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Api api({.tool = "test"});
    ServerOptions options;
    options.port = 0;
    Server server(api, options);
    std::thread thread([&] { server.run(); });
    const Client client(server.port());
    EXPECT_TRUE(answered_on(client));
    ::kill(::getpid(), signal);
    thread.join();
    EXPECT_TRUE(client.ends_within(300));
  }
}

TEST(Room, anAddressThatCannotBeTakenIsAMistakeThatNamesIt) {
  Api api({.tool = "test"});
  const auto mistake = [&](const std::string& host, std::uint16_t port) {
    ServerOptions options;
    options.host = host, options.port = port, options.until_signal = false;
    try {
      const Server server(api, options);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(mistake("localhost", 0), "none");
  EXPECT_EQ(mistake("127.0.0.1", 0), "none");
  EXPECT_EQ(mistake("nowhere.example", 0), "--host: 'nowhere.example' is no address in numbers, nor localhost");
  EXPECT_EQ(mistake("192.0.2.1", 0),
            "cannot listen on 192.0.2.1 port 0: Cannot assign requested address (--port, --host)");
  const OwnServer other;
  EXPECT_EQ(mistake("localhost", other.port()), "cannot listen on localhost port " + std::to_string(other.port()) +
                                                    ": Address already in use (--port, --host)");
}

// A port whose last connection ended a moment ago is free.
TEST(Room, aPortIsFreeAgainAtOnce) {
  Api api({.tool = "test"});
  ServerOptions options;
  options.port = 0, options.until_signal = false;
  {
    Server server(api, options);
    options.port = server.port();
    std::thread thread([&] { server.run(); });
    const Client client(options.port);
    client.send(request("/api/hosts"));
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));  // the server ends it first, and remembers that
    server.stop();
    thread.join();
  }
  const Server again(api, options);
  EXPECT_EQ(again.port(), options.port);
}

// As many studies as there are workers, and more that wait, keep nobody from what takes milliseconds.
TEST(Room, studiesDelayNoShortAnswers) {
  ServerOptions options;
  options.workers = 1;
  const OwnServer server(options);
  std::vector<std::unique_ptr<Client>> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(std::make_unique<Client>(server.port()));
    busy.back()->send(request("/api/sweep", "", endless_sweep(), "POST"));
  }
  wait_ms(100);
  const auto begin = std::chrono::steady_clock::now();
  const Client other(server.port());
  EXPECT_TRUE(answered_on(other));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace ridgeline::serve
