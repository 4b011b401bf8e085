// The WebSocket: numbers of questions, answers in frames, progress, limits and what gives a question up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/serve/served_client.h"

namespace ridgeline::serve {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// One that was taken over: what it says comes in frames.
class Talk {
 public:
  explicit Talk(std::uint16_t port, const std::string& target = "/api/socket") : client_(port) {
    client_.send(upgrade("", target));
    EXPECT_THAT(client_.receive("\r\n\r\n"), StartsWith("HTTP/1.1 101"));
  }
  void ask(const std::string& message) const { client_.send(frame(1, message)); }
  void send(const std::string& bytes) const { client_.send(bytes); }
  void hang_up() { client_.hang_up(); }
  /// The next message: its first byte (0x81: a text, 0x88: the end) and what it holds; 0 where nothing comes. Pieces of
  /// one message are put together; pings are nobody's message.
  std::pair<int, std::string> next(int ms = 5000) {
    std::string whole;
    int kind = 0;
    while (true) {
      const auto [first, piece] = next_frame(ms);
      if (first < 0) return {};
      if (first == 0x89) continue;
      if (kind == 0) kind = first | 0x80;
      whole += piece;
      if ((first & 0x80) != 0) return {kind, whole};
    }
  }
  /// The next message, which is JSON in one frame of text.
  json said(int ms = 5000) {
    const auto [first, text] = next(ms);
    EXPECT_EQ(first, 0x81) << text;
    return json::parse(text, nullptr, false);
  }
  [[nodiscard]] bool ends_within(int ms) const { return client_.ends_within(ms); }

 private:
  std::pair<int, std::string> next_frame(int ms) {
    const auto need = [&](std::size_t bytes) {
      while (held_.size() < bytes) {
        const std::string more = client_.some(ms);
        if (more.empty()) return false;
        held_ += more;
      }
      return true;
    };
    if (!need(2)) return {-1, ""};
    std::size_t length = static_cast<unsigned char>(held_[1]), at = 2;
    if (length >= 126) {
      const std::size_t bytes = length == 126 ? 2 : 8;
      if (!need(2 + bytes)) return {-1, ""};
      length = 0;
      for (; at < 2 + bytes; ++at) length = length << 8 | static_cast<unsigned char>(held_[at]);
    }
    if (!need(at + length)) return {-1, ""};
    const int first = static_cast<unsigned char>(held_[0]);
    std::string text = held_.substr(at, length);
    held_.erase(0, at + length);
    return {first, text};
  }
  Client client_;
  std::string held_;
};

std::string swept(int id, int points = 0) {
  return R"({"id":)" + std::to_string(id) + R"(,"target":"/api/sweep","body":)" +
         (points > 0 ? sweep_body(points) : endless_sweep()) + "}";
}
std::string canceled(int id) { return R"({"cancel":)" + std::to_string(id) + "}"; }
std::string hosts(int id) { return R"({"id":)" + std::to_string(id) + R"(,"target":"/api/hosts"})"; }
std::string message_of(const json& said) { return said["answer"]["error"]["message"]; }

TEST(Socket, answersCarryTheNumberOfTheirQuestion) {
  const OwnServer server;
  Talk talk(server.port());
  const json names =
      json::parse(server.said(request("/api/hosts")).substr(server.said(request("/api/hosts")).find("\r\n\r\n") + 4));
  for (const int id : {0, 1, 2147483647, 1}) {
    talk.ask(hosts(id));
    EXPECT_EQ(talk.said(), (json{{"id", id}, {"status", 200}, {"answer", names}}));
  }
  talk.ask(R"({"id":7,"target":"/api/compare","body":[]})");
  json said = talk.said();
  EXPECT_EQ(said["status"], 400) << "a body makes it a POST";
  EXPECT_THAT(message_of(said), HasSubstr("sides"));
  talk.ask(R"({"id":7,"target":"/api/compare"})");
  EXPECT_EQ(talk.said()["status"], 405) << "none a GET";
  talk.ask(R"({"id":8,"target":"/api/kernels?hardware=nvidia-t4","body":"{\"op\":\"no\"}"})");
  said = talk.said();
  EXPECT_EQ(said["status"], 200);
  EXPECT_TRUE(said["answer"].is_string()) << "lines are no JSON, so they are a text of JSON";
  EXPECT_THAT(said["answer"].get<std::string>(), HasSubstr("\"error\""));
  for (const char* mistake : {"no json", "{}", R"({"id":1})", R"({"id":-1,"target":"/"})"}) {
    talk.ask(mistake);
    EXPECT_THAT(talk.said()["error"]["message"].get<std::string>(), StartsWith("expected ")) << mistake;
  }
  talk.send(frame(2, hosts(1)));
  EXPECT_THAT(talk.said()["error"]["message"].get<std::string>(), StartsWith("expected an object")) << "no text";
}

TEST(Socket, aQuestionIsGivenUpByItsNumber) {
  const OwnServer server;
  Talk talk(server.port());
  for (const int id : {0, 1, 5}) {
    talk.ask(swept(id));
    talk.ask(canceled(id + 10));  // somebody else's, of which nothing is said
    talk.ask(canceled(id));
    json said;
    do said = talk.said();
    while (said.contains("progress"));
    EXPECT_EQ(said["id"], id);
    EXPECT_EQ(said["status"], 409);
  }
  talk.ask(hosts(1));
  EXPECT_EQ(talk.said()["status"], 200) << "numbers can be used again";
}

TEST(Socket, fourQuestionsAreAnsweredAtOnce) {
  ServerOptions options;
  options.workers = 1;
  const OwnServer server(options);
  Talk talk(server.port());
  for (int id = 1; id <= 4; ++id) talk.ask(swept(id));
  talk.ask(hosts(5));
  json said;
  do said = talk.said();
  while (said.contains("progress"));
  EXPECT_EQ(said["id"], 5);
  EXPECT_EQ(said["status"], 503);
  EXPECT_EQ(message_of(said), "four questions of this socket are being answered");
  talk.ask(hosts(3));
  do said = talk.said();
  while (said.contains("progress"));
  EXPECT_EQ(said["id"], 3);
  EXPECT_EQ(message_of(said), "a question of that id is being answered");
  for (int id = 1; id <= 4; ++id) talk.ask(canceled(id));
  std::set<int> given_up;
  while (given_up.size() < 4) {
    said = talk.said();
    if (said.contains("progress")) continue;
    EXPECT_EQ(said["status"], 409);
    if (!given_up.insert(said["id"].get<int>()).second) break;
  }
  EXPECT_EQ(given_up, (std::set<int>{1, 2, 3, 4}));
  talk.ask(hosts(3));
  EXPECT_EQ(talk.said()["status"], 200);
}

TEST(Socket, aNumberTwiceIsToldWhileItsFirstIsAnswered) {
  const OwnServer server;
  Talk talk(server.port());
  talk.ask(swept(2));
  talk.ask(hosts(2));
  json said;
  do said = talk.said();
  while (said.contains("progress"));
  EXPECT_EQ(said["status"], 503);
  EXPECT_EQ(message_of(said), "a question of that id is being answered");
}

TEST(Socket, aServerThatTakesNoMoreSaysSoEachTime) {
  ServerOptions options;
  options.waiting = 1, options.workers = 1;
  const OwnServer server(options);
  Talk talk(server.port());
  talk.ask(swept(1));
  for (int again = 0; again < 5; ++again) {
    talk.ask(swept(2));
    json said;
    do said = talk.said();
    while (said.contains("progress"));
    EXPECT_EQ(said["id"], 2);
    EXPECT_EQ(said["status"], 503);
    EXPECT_EQ(message_of(said), "as many questions as this server takes are waiting; ask again");
  }
}

// Not more often than every tenth of a second.
TEST(Socket, progressIsToldNowAndThen) {
  const OwnServer server;
  Talk talk(server.port());
  constexpr int kPoints = 130;
  const auto begin = std::chrono::steady_clock::now();
  talk.ask(swept(3, kPoints));
  std::vector<json> told;
  json said;
  while ((said = talk.said()).contains("progress")) told.push_back(said);
  const auto tenths = (std::chrono::steady_clock::now() - begin) / milliseconds(100);
  EXPECT_EQ(said["status"], 200);
  EXPECT_EQ(said["answer"]["points"].size(), static_cast<std::size_t>(kPoints));
  ASSERT_GE(told.size(), 1U);
  EXPECT_LE(static_cast<std::int64_t>(told.size()), tenths + 1);
  if (tenths >= 5) {
    EXPECT_GE(told.size(), 2U);
  }
  int before = 0;
  for (const json& one : told) {
    EXPECT_EQ(one["id"], 3);
    EXPECT_EQ(one["progress"]["total"], kPoints);
    EXPECT_GT(one["progress"]["done"], before);
    EXPECT_LE(one["progress"]["done"], kPoints);
    before = one["progress"]["done"];
  }
}

TEST(Socket, whoHangsUpGivesAllQuestionsUp) {
  ServerOptions options;
  options.waiting = 2, options.workers = 1;
  const OwnServer server(options);
  Talk talk(server.port());
  talk.ask(swept(1));
  talk.ask(swept(2));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_THAT(server.said(request("/api/sweep", "", sweep_body(2), "POST")), StartsWith("HTTP/1.1 503"));
  talk.hang_up();
  bool answered = false;
  for (int i = 0; i < 20 && !answered; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    answered = server.said(request("/api/sweep", "", sweep_body(2), "POST")).starts_with("HTTP/1.1 200");
  }
  EXPECT_TRUE(answered);
}

// A mebibyte, and one byte more: then the socket ends with 1009, message too big (RFC 6455, 7.4.1).
TEST(Socket, aMessageHasAMebibyte) {
  const OwnServer server;
  Talk talk(server.port());
  const std::string question = hosts(1);
  talk.ask(question + std::string((1 << 20) - question.size(), ' '));
  EXPECT_EQ(talk.said()["status"], 200);
  talk.ask(question + std::string((1 << 20) + 1 - question.size(), ' '));
  const auto [first, text] = talk.next();
  EXPECT_EQ(first, 0x88);
  EXPECT_THAT(text, StartsWith("\x03\xf1"));
}

TEST(Socket, aTokenOfTheAddressCountsForEveryQuestion) {
  const OwnServer server({}, {.tool = "test", .guard = {"127.0.0.1", "secret"}});
  for (const char* target : {"/api/socket?token=secret", "/api/socket?a=1&token=secret&b=2"}) {
    Talk talk(server.port(), target);
    talk.ask(hosts(1));
    EXPECT_EQ(talk.said()["status"], 200) << target;
  }
  const Client stranger(server.port());
  stranger.send(upgrade("", "/api/socket?token=other"));
  EXPECT_THAT(stranger.receive(), StartsWith("HTTP/1.1 403"));
}

// Sixty-four answers wait to be read, and not more.
TEST(Socket, whoReadsNothingIsLeft) {
  const OwnServer server;
  Talk talk(server.port());
  talk.ask(R"({"id":1,"target":"/api/microkernels"})");
  const auto [kind, first] = talk.next(120'000);  // the first answer is worked out, which takes long under a sanitizer
  ASSERT_EQ(kind, 0x81);
  const std::size_t one = first.size();
  ASSERT_GT(one, 100'000u);
  const std::size_t count = 80 + 12'000'000 / one;
  for (std::size_t i = 0; i < count; ++i) {
    talk.ask(R"({"id":1,"target":"/api/microkernels"})");
    std::this_thread::sleep_for(milliseconds(count > 300 ? 2 : 10));
  }
  std::this_thread::sleep_for(milliseconds(500));
  std::size_t answers = 0;
  while (talk.next(500).first == 0x81) ++answers;
  EXPECT_LT(answers, count);
}

}  // namespace
}  // namespace ridgeline::serve
