// Studies over the API: what their bodies and parameters may be, at both sides of each limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/serve/api.h"

namespace ridgeline::serve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kAskedScenario =
    R"({"hardware": "nvidia-t4", "model": "bert-base", "training": {"micro_batch": 2, "sequence_length": 128, "precision": "fp32"}})";

struct Studies : ::testing::Test {
  Api api{{.tool = "ridgeline test", .most_sweep_points = 4}};

  Reply ask(const std::string& target, const std::string& body, const std::string& method = "POST") {
    Request request{.method = method, .target = target, .body = body};
    request.host = "localhost";
    return api.answer(request);
  }
  std::string mistake(const std::string& target, const std::string& body) {
    const Reply reply = ask(target, body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return json::parse(reply.body)["error"]["message"];
  }
};

TEST_F(Studies, aComparisonHasTwoToManySidesAndNothingElse) {
  const std::string expected = "expected {\"sides\": [{\"scenario\": …, \"set\": […], \"label\": …}, …]}";
  const std::string side = "{\"scenario\": " + kAskedScenario + "}";
  for (const std::string& body :
       {std::string("[]"), std::string("3"), std::string("{}"), std::string(R"({"side": []})"),
        std::string(R"({"sides": 3})"), std::string(R"({"sides": {}})"),
        "{\"sides\": [" + side + "," + side + "], \"more\": 1}"})
    EXPECT_EQ(mistake("/api/compare", body), expected) << body;
  EXPECT_THAT(mistake("/api/compare", R"({"sides": []})"), HasSubstr("got 0"));
  EXPECT_THAT(mistake("/api/compare", "{\"sides\": [" + side + "]}"), HasSubstr("sides: expected 2 to "));
  std::string many = side;
  for (int i = 0; i < 99; ++i) many += "," + side;
  EXPECT_THAT(mistake("/api/compare", "{\"sides\": [" + many + "]}"), HasSubstr("got 100"));
  EXPECT_EQ(mistake("/api/compare", R"({"sides": [1, 2]})"),
            "sides: expected objects {\"scenario\": …, \"set\": […], \"label\": …}");
  EXPECT_THAT(mistake("/api/compare", R"({"sides": [{"label": 3}, {}]})"), HasSubstr("sides: label: expected"));
  EXPECT_THAT(mistake("/api/compare", R"({"sides": [{"scenario": []}, {}]})"), HasSubstr("sides: scenario: expected"));
  EXPECT_THAT(mistake("/api/compare", R"({"sides": [{"set": [1]}, {}]})"), HasSubstr("sides: set holds texts"));
  EXPECT_THAT(mistake("/api/compare", R"({"sides": [{"sets": []}, {}]})"), HasSubstr("sides: sets: expected"));
}

TEST_F(Studies, sidesAreTextsOrObjectsWithLabelsOfTheirOwn) {
  const std::string text =
      R"("{title: named, hardware: nvidia-t4, model: bert-base, training: {micro_batch: 2, sequence_length: 128, precision: fp32}}")";
  const Reply reply = ask("/api/compare", "{\"sides\": [{\"scenario\": " + text +
                                              "}, {\"label\": \"B\", \"scenario\": " + kAskedScenario +
                                              ", \"set\": [\"training.micro_batch=3\"]}]}");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json told = json::parse(reply.body);
  EXPECT_EQ(told["scenarios"][0]["label"], "named");
  EXPECT_EQ(told["scenarios"][1]["label"], "B");
}

// Sixty-four lists inside each other are read, one more is not.
TEST_F(Studies, bodiesAreNestedSoDeepAndNotDeeper) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_THAT(mistake("/api/compare", nested(64)), HasSubstr("expected {"));
  EXPECT_EQ(mistake("/api/compare", nested(65)), "nested more than 64 levels deep");
  EXPECT_EQ(mistake("/api/compare", nested(300'000)), "nested more than 64 levels deep");
  EXPECT_EQ(mistake("/api/compare", "{"), "the body is no JSON");
  EXPECT_EQ(mistake("/api/compare", ""), "the body is no JSON");
  EXPECT_EQ(mistake("/api/compare", "[1,]"), "the body is no JSON");
}

TEST_F(Studies, listsOfNumbersHaveCommasBetween) {
  for (const char* text : {"two", "0", "-1", "1;2", "1,x", "1,,2", "8,0", "1.5", ",1", "99999999999999999999"}) {
    EXPECT_EQ(mistake(std::string("/api/plan?gpus=") + text, kAskedScenario),
              "gpus: expected numbers of at least 1, as in 8,16")
        << text;
    EXPECT_EQ(mistake(std::string("/api/plan?gpus=1&sequences=") + text, kAskedScenario),
              "sequences: expected numbers of at least 1, as in 8,16")
        << text;
  }
}

TEST_F(Studies, aSweepHasAsManyPointsAsAServerTakes) {
  const auto sweep = [](const std::string& batches, const std::string& more = "") {
    return "{\"scenario\": " + kAskedScenario + ", \"axes\": {\"training.micro_batch\": [" + batches + "]}" + more +
           "}";
  };
  EXPECT_EQ(ask("/api/sweep", sweep("1, 2, 3, 4")).status, 200);
  EXPECT_EQ(mistake("/api/sweep", sweep("1, 2, 3, 4, 5")),
            "the sweep has 5 points, a server takes 4; sample: {points: 4}, or ridgeline sweep");
  EXPECT_EQ(ask("/api/sweep", sweep("1, 2, 3, 4, 5", R"(, "sample": {"points": 4})")).status, 200);
  EXPECT_THAT(mistake("/api/sweep", sweep("1, 2, 3, 4, 5, 6", R"(, "sample": {"points": 5})")),
              HasSubstr("the sweep has 5 points"));
  EXPECT_EQ(ask("/api/sweep", sweep("1, 2, 3", R"(, "sample": {"points": 9})")).status, 200) << "there are three";
  EXPECT_THAT(mistake("/api/sweep?engine=analytic", sweep("1")), HasSubstr("knows no parameter of that name"));
  EXPECT_NE(mistake("/api/sweep", R"({"scenario": )" + kAskedScenario + R"(, "axes": {"training.micro_bach": [1]}})"),
            "");
}

TEST_F(Studies, methodsAreThoseOfThePath) {
  for (const char* path : {"/api/predict", "/api/compare", "/api/fit", "/api/sweep", "/api/plan", "/api/kernels"}) {
    const Reply reply = ask(path, "", "GET");
    EXPECT_EQ(reply.status, 405);
    EXPECT_EQ(reply.allow, "POST");
    EXPECT_EQ(json::parse(reply.body)["error"]["message"],
              std::string(path) + ": ask with POST, the question in the body");
  }
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    const Reply reply = ask("/api/hosts", "", method);
    EXPECT_EQ(reply.status, 405);
    EXPECT_EQ(reply.allow, "GET, HEAD");
    EXPECT_EQ(json::parse(reply.body)["error"]["message"], "/api/hosts: ask with GET");
  }
  EXPECT_EQ(ask("/api/hosts", "", "GET").status, 200);
  EXPECT_EQ(ask("/api/hosts", "", "HEAD").status, 200);
  EXPECT_EQ(json::parse(ask("/somewhere", "", "GET").body)["error"]["message"], "there is nothing at /somewhere");
}

TEST_F(Studies, theLibraryTakesItsParametersAlone) {
  for (const char* path : {"/api/hardware", "/api/models", "/api/scenarios", "/api/exercises", "/api/clusters",
                           "/api/hosts", "/api/software"}) {
    EXPECT_EQ(ask(std::string(path) + "?no_such=1", "", "GET").status, 400) << path;
    EXPECT_EQ(ask(std::string(path) + "?token=1", "", "GET").status, 200) << path;
  }
  for (const char* path : {"/api/clusters/", "/api/hosts/x", "/api/software/x", "/api/memory/x"})
    EXPECT_EQ(ask(path, "", "GET").status, 404) << path;
  for (const char* number : {"x", "1x", "99", "-"})
    EXPECT_EQ(ask(std::string("/api/exercises/") + number, "", "GET").status, 400) << number;
  EXPECT_EQ(json::parse(ask("/api/exercises/1x", "", "GET").body)["error"]["message"], "exercises: '1x' is no number");
  EXPECT_EQ(json::parse(ask("/api/memory", "", "GET").body)["error"]["message"],
            "file: say which recording (below a --folder of the server)");
}

// Keys of a chip may be named as a scenario names them.
TEST_F(Studies, aChipIsShownAsChanged) {
  const auto count = [&](const std::string& set) {
    return json::parse(ask("/api/hardware/nvidia-t4" + set, "", "GET").body)["values"]["sm.count"]["value"];
  };
  EXPECT_EQ(count(""), "40");
  EXPECT_EQ(count("?set=sm.count%3D47"), "47");
  EXPECT_EQ(count("?set=hardware.sm.count%3D48"), "48");
}

TEST_F(Studies, kernelsThatAreAskedByNumberAreThoseThatThereAre) {
  const json page = json::parse(ask("/api/predict?show=groups", kAskedScenario).body)["page"];
  const std::size_t count = page["groups"].size();
  const auto status = [&](std::size_t index) {
    return ask("/api/predict?kernel=" + std::to_string(index), kAskedScenario).status;
  };
  EXPECT_EQ(status(0), 200);
  EXPECT_EQ(status(count - 1), 200);
  EXPECT_EQ(mistake("/api/predict?kernel=" + std::to_string(count), kAskedScenario),
            "kernel: the step has kernels 0 to " + std::to_string(count - 1) + ", got " + std::to_string(count));
  // A piece that is not asked for is not there.
  for (const char* show : {"groups", "spans", "memory", "blocks", "power", "caches"}) {
    const json told = json::parse(ask(std::string("/api/predict?show=") + show, kAskedScenario).body)["page"];
    for (const char* other : {"groups", "spans", "memory", "blocks", "power", "caches"})
      EXPECT_EQ(told.contains(other), std::string(show) == other) << show << other;
  }
}

}  // namespace
}  // namespace ridgeline::serve
