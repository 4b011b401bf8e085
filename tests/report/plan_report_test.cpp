// A plan as text and JSON, from ways and answers made by hand.
#include "sim/report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/units/user_error.h"
#include "tests/support/made_comparison.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct PlanReport : ::testing::Test {
  Session session;
  PlanQuestion question;
  PlanSearch search;
  PlanAnswer answer;

  void SetUp() override {
    question.title = "a plan", question.cluster = "a-cluster", question.hardware = "nvidia-made";
    question.batch = 48, question.capacity = made_gib(80);
    question.sweep.engine = "analytic";
    PlanCandidate sharded, plain, stages, refused, large, slow;
    for (PlanCandidate* one : {&sharded, &plain, &stages, &refused, &large, &slow}) one->gpus = 8;
    sharded.data = 4, sharded.tensor = 2, sharded.strategy = "fsdp", sharded.tensor_style = "dtensor";
    sharded.micro_batch = 4, sharded.accumulation = 3, sharded.recompute = "none";
    sharded.changes = {{"training.micro_batch", "4", ""}, {"training.parallel.data", "4", ""}};
    sharded.least_time = made_ms(150), sharded.least_memory = made_gib(11);
    plain.data = 8, plain.strategy = "ddp", plain.accumulation = 6, plain.recompute = "block";
    stages.pipeline = 8, stages.schedule = "1f1b", stages.virtual_stages = 2, stages.accumulation = 48;
    refused.refused_key = "training.parallel.tensor", refused.refused = "must divide 12 heads", refused.refusals = 5;
    question.candidates = {sharded, plain, stages, refused, large, slow};
    search.entries = {{sharded, PlanFate::predicted, made_ms(200), made_gib(12.5), ""},
                      {plain, PlanFate::predicted, made_ms(210), made_gib(10), ""},
                      {stages, PlanFate::no_room, made_ms(180), made_gib(96), ""},
                      {refused, PlanFate::refused, {}, 0, ""},
                      {large, PlanFate::too_large, {}, 0, ""},
                      {slow, PlanFate::too_slow, {}, 0, ""}};
    search.best = {0, 1}, search.front = {0, 1}, search.predictions = 3;
    Scenario rented;
    rented.gpu.price_per_hour = 2;
    PlanRow first{0, made_side(session, "sharded", rented), {}}, second{1, made_side(session, "plain", rented), {}};
    first.side.prediction.parallel = made_parallel();
    StepPrediction& step = second.side.prediction.step;
    step.time = made_ms(210), step.low = made_ms(195), step.high = made_ms(240);
    step.samples_per_s = 152, step.tokens_per_s = 78000, step.mfu = 0.4, step.energy.energy = Joules{72};
    second.side.prediction.memory.device_used = made_gib(10);
    second.against_best.time = made_ms(10), second.against_best.memory = made_gib(-2.5);
    ClassWork waited, waits;
    waited.time = made_ms(20), waits.time = made_ms(21.5);
    second.against_best.classes = {made_difference(KernelClass::communication, made_work(10, 4, Limiter::link),
                                                   made_work(18, 4, Limiter::link), 0, 8),
                                   made_difference({}, waited, waits, 0, 0)};  // 1.5 of 10 ms need no words
    answer.rows = {first, second};
    answer.order = PlanOrder{true, 0.62, 1.02, 1.07};
    answer.changes = {{"links half as fast", 1, made_ms(260), made_ms(280)}, {"a host twice as slow", 0, {}, {}}};
    answer.with_memory = PlanWithMemory{2, made_ms(180), made_gib(96)};
  }
  [[nodiscard]] std::string text() const { return plan_text(question, search, answer); }
};

// 350 W of 8 boards for 160 sequences a second: 17.5 J; 16 USD an hour for 576,000 sequences: 27.8 for a million.
TEST_F(PlanReport, SaysTheBestWaysAndWhatSeparatesThem) {
  EXPECT_EQ(text(), R"(a plan
8 x nvidia-made, cluster a-cluster; a step has 48 sequences
10 ways: 2 fit and were predicted, 2 do not fit, 1 too slow by their bounds, 5 cannot run

best, by step time (a step: micro-batches x sequences of one)
       step ms            range   tokens/s     GiB  how
   1       200        190 - 215     81,920    12.5  data 4 fsdp, tensor 2 dtensor; 3 x 4
   2       210        195 - 240     78,000      10  data 8 ddp; 6 x 1, recompute block
   1  MFU 43 %, communication 6 ms exposed and 34 ms hidden, bubble 9 ms, 17.5 J a sequence, 27.8
      USD for a million sequences
      training: micro_batch=4, parallel.data=4

what separates them from the first
   2  +10 ms, -2.5 GiB: communication +8 ms (4.50 ms a kernel instead of 2.50 ms)

nothing is better in time and memory than these (up to 1.5 times the fastest)
           200 ms    12.5 GiB  data 4 fsdp, tensor 2 dtensor; 3 x 4
           210 ms      10 GiB  data 8 ddp; 6 x 1, recompute block

how sure the order is
  the ranges of first and second overlap; 62 % of the first's step are kernels that the second runs
  too, whose error is common. Where all kernels and the host are off alike, the second stays 2 to 7
  % slower.

what would change the choice
  links half as fast: number 2 (260 ms, the first 280 ms)
  96 GiB a GPU in place of 80: pipeline 8 1f1b, 2 stages a rank; 48 x 1 (180 ms)
  not: a host twice as slow

left out
       5  training.parallel.tensor: must divide 12 heads
       1  does not fit as predicted
       1  needs more memory than the device has, by its states and activations alone
       1  takes longer than the answers, by its least time
)");
}

TEST_F(PlanReport, AnOrderThatEitherWayMayTurnSaysBothEnds) {
  answer.order = PlanOrder{false, 0.5, 0.97, 1.05};
  EXPECT_THAT(text(), HasSubstr("  the ranges of first and second do not overlap; 50 % of the first's step"));
  EXPECT_THAT(text(), HasSubstr("the second\n  takes 97 to 105 % of the first's time: either may be faster.\n"));
  answer.order.reset();
  EXPECT_THAT(text(), Not(HasSubstr("how sure")));
}

TEST_F(PlanReport, SeveralCountsOfGpusHaveAColumn) {
  question.candidates[1].gpus = search.entries[1].candidate.gpus = 16;
  question.assumed = "nobody said which cluster";
  answer.rows[1].side.prediction.parallel.reset();
  EXPECT_THAT(text(), HasSubstr("\n8, 16 x nvidia-made, cluster a-cluster; a step has 48 sequences\nnobody said which "
                                "cluster\n"));
  EXPECT_THAT(text(), HasSubstr("   2       210        195 - 240     78,000      10    16  data 8 ddp; 6 x 1"));
  EXPECT_THAT(text(), HasSubstr("nothing is better in time, GPUs and memory than these (up to 1.5 times the fastest)\n"
                                "           200 ms    12.5 GiB     8 GPUs  data 4 fsdp"));
}

// Ten ways of one count: eight are shown, the first and the last among them.
TEST_F(PlanReport, AWayThatFillsItsLineStaysInIt) {
  const std::string numbers = "   1       200        190 - 215     81,920    12.5";
  const auto row_of = [&](std::size_t letters) {
    question.candidates[0].strategy = search.entries[0].candidate.strategy = std::string(letters, 's');
    const std::string whole = text();
    const std::size_t begin = whole.find("\n   1  ") + 1;
    return whole.substr(begin, whole.find("\n   2  ") - begin + 1);
  };
  const std::string rest = ", tensor 2 dtensor; 3 x 4";
  const std::size_t fits = 100 - numbers.size() - 2 - std::string("data 4 ").size() - rest.size();
  EXPECT_EQ(row_of(fits), numbers + "  data 4 " + std::string(fits, 's') + rest + "\n");
  EXPECT_EQ(row_of(fits + 1), numbers + "\n      data 4 " + std::string(fits + 1, 's') + rest + "\n");
}

TEST_F(PlanReport, ALongFrontIsShownInEvenSteps) {
  search.entries.resize(1);
  search.front.clear();
  for (std::size_t i = 0; i < 15; ++i) {
    search.front.push_back(search.entries.size());
    search.entries.push_back(search.entries[0]);
    search.entries.back().time = made_ms(300 + static_cast<double>(i));
  }
  for (const int shown : {300, 302, 304, 306, 308, 310, 312, 314})
    EXPECT_THAT(text(), HasSubstr("           " + std::to_string(shown) + " ms    12.5 GiB")) << shown;
  EXPECT_THAT(text(), Not(HasSubstr(" 301 ms ")));
  EXPECT_THAT(text(), HasSubstr("\n      8 of 15; --format json has all\n"));
}

TEST_F(PlanReport, ReasonsThatDifferInNumbersAreOne) {
  search.entries[4] = search.entries[3];
  search.entries[4].candidate.refused = "must divide 16 heads", search.entries[4].candidate.refusals = 2;
  search.entries[5] = search.entries[3];
  search.entries[5].why = "no such kernel";
  const std::vector<LeftOut> reasons = left_out_of(search);
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_EQ(reasons[0].why, "training.parallel.tensor: must divide 12 heads") << "the first of them";
  EXPECT_EQ(reasons[0].ways, 7);
  EXPECT_EQ(reasons[1].ways, 1);
  EXPECT_EQ(reasons[2].why, "no such kernel");
}

TEST_F(PlanReport, NothingThatFitsIsNoAnswer) {
  EXPECT_NO_THROW(check_that_some_fit(question, search));
  search.best.clear();
  const auto says = [&] {
    try {
      check_that_some_fit(question, search);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(says(), "plan: no way to train can run; most say: training.parallel.tensor: must divide 12 heads");
  search.nearest = 2;
  EXPECT_EQ(says(),
            "plan: nothing fits on 8 GPUs; the nearest needs 96.00 GiB of the 80.00 GiB that a device has: "
            "pipeline 8 1f1b, 2 stages a rank; 48 x 1");
  search.entries[2].memory = made_gib(79);
  EXPECT_THAT(says(), HasSubstr("79.00 GiB of the 80.00 GiB that a device has, and comparable runs took more: "));
}

TEST_F(PlanReport, JsonHasTheQuestionTheBestAndEveryWay) {
  const json out = json(plan_json(question, search, answer));
  EXPECT_EQ(out["title"], "a plan");
  EXPECT_EQ(out["hardware"], "nvidia-made");
  EXPECT_EQ(out["cluster"], "a-cluster");
  EXPECT_TRUE(out["assumed"].is_null());
  EXPECT_EQ(out["sequences"], 48);
  EXPECT_EQ(out["capacity_bytes"], made_gib(80));
  EXPECT_EQ(out["predictions"], 3);
  EXPECT_EQ(out["front"], json({0, 1}));
  EXPECT_EQ(out["order"],
            (json{{"overlap", true}, {"common", 0.62}, {"least_ratio", 1.02}, {"most_ratio", 1.07}, {"holds", true}}));
  EXPECT_EQ(out["with_more_memory"], (json{{"way", 2}, {"step_time_s", 0.18}, {"memory_bytes", made_gib(96)}}));
  ASSERT_EQ(out["left_out"].size(), 4U);
  EXPECT_EQ(out["left_out"][0], (json{{"why", "training.parallel.tensor: must divide 12 heads"}, {"ways", 5}}));
  ASSERT_EQ(out["changes"].size(), 2U);
  EXPECT_EQ(out["changes"][0]["step_time_s"], 0.26);
  EXPECT_EQ(out["changes"][0]["best_step_time_s"], 0.28);
}

TEST_F(PlanReport, JsonOfARowIsOfAllBoards) {
  const json out = json(plan_json(question, search, answer))["best"];
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0]["way"], 0);
  EXPECT_EQ(out[0]["label"], "sharded");
  EXPECT_EQ(out[0]["step_time_s"], 0.2);
  EXPECT_EQ(out[0]["low_s"], 0.19);
  EXPECT_EQ(out[0]["high_s"], 0.215);
  EXPECT_EQ(out[0]["tokens_per_s"], 81920.0);
  EXPECT_EQ(out[0]["tokens_per_s_a_gpu"], 10240.0);
  EXPECT_EQ(out[0]["memory_bytes"], made_gib(12.5));
  EXPECT_EQ(out[0]["energy_j"], 560.0) << "70 J of eight boards";
  EXPECT_EQ(out[0]["price_usd_per_hour"], 16.0);
  EXPECT_NEAR(out[0]["price_usd_per_million"].get<double>(), 16.0 / 0.576, 1e-9);
  EXPECT_EQ(out[0]["exposed_communication_s"], made_ms(6).value());
  EXPECT_EQ(out[0]["bubble_s"], made_ms(9).value());
  EXPECT_TRUE(out[0]["against_best"].is_null());
  EXPECT_EQ(out[1]["exposed_communication_s"], 0.0);
  EXPECT_EQ(out[1]["against_best"]["time_s"], 0.01);
  EXPECT_EQ(out[1]["against_best"]["memory_bytes"], made_gib(-2.5));
  EXPECT_EQ(out[1]["against_best"]["classes"][0]["class"], "communication");
  EXPECT_EQ(out[1]["against_best"]["classes"][1]["class"], "idle");
}

// One is a number as any other, none is null.
TEST_F(PlanReport, JsonOfAWayHasNullWhereThereIsNone) {
  for (const int count : {1, 2}) {
    PlanCandidate& way = search.entries[3].candidate;
    way.refusals = count, way.replicate = count, way.virtual_stages = count;
    way.sequence_parallel = way.no_sync = count == 2, way.context = 3 * count, way.expert = 5 * count;
    const json told = json(plan_json(question, search, answer))["ways"][3];
    EXPECT_EQ(told["refusals"], count);
    EXPECT_EQ(told["replicate"], count);
    EXPECT_EQ(told["virtual_stages"], count);
    EXPECT_EQ(told["sequence_parallel"], count == 2);
    EXPECT_EQ(told["no_sync"], count == 2);
    EXPECT_EQ(told["context"], 3 * count);
    EXPECT_EQ(told["expert"], 5 * count);
    EXPECT_TRUE(told["strategy"].is_null() && told["tensor_style"].is_null() && told["schedule"].is_null());
  }
  search.entries[3].why = "no such kernel";
  EXPECT_EQ(json(plan_json(question, search, answer))["ways"][3]["why"], "no such kernel");
}

TEST_F(PlanReport, JsonOfAWayHasItsChoicesAndItsFate) {
  const json ways = json(plan_json(question, search, answer))["ways"];
  ASSERT_EQ(ways.size(), 6U);
  EXPECT_EQ(ways[0], (json{{"gpus", 8},
                           {"data", 4},
                           {"strategy", "fsdp"},
                           {"replicate", nullptr},
                           {"tensor", 2},
                           {"tensor_style", "dtensor"},
                           {"sequence_parallel", false},
                           {"pipeline", 1},
                           {"schedule", nullptr},
                           {"virtual_stages", nullptr},
                           {"context", 1},
                           {"expert", 1},
                           {"micro_batch", 4},
                           {"gradient_accumulation", 3},
                           {"activation_checkpointing", "none"},
                           {"no_sync", false},
                           {"fate", "predicted"},
                           {"why", nullptr},
                           {"refusals", nullptr},
                           {"step_time_s", 0.2},
                           {"memory_bytes", made_gib(12.5)},
                           {"least_time_s", made_ms(150).value()},
                           {"least_memory_bytes", made_gib(11)},
                           {"set", {"training.micro_batch=4", "training.parallel.data=4"}}}));
  EXPECT_EQ(ways[2]["virtual_stages"], 2);
  EXPECT_EQ(ways[2]["fate"], "does not fit");
  EXPECT_EQ(ways[3]["fate"], "cannot run");
  EXPECT_EQ(ways[3]["why"], "training.parallel.tensor: must divide 12 heads");
  EXPECT_EQ(ways[3]["refusals"], 5);
  EXPECT_TRUE(ways[3]["step_time_s"].is_null());
  EXPECT_EQ(ways[4]["fate"], "too large");
  EXPECT_EQ(ways[5]["fate"], "too slow");
}

}  // namespace
}  // namespace ridgeline
