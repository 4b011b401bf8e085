// Small op traces drawn at random, with steps of nothing, of storages, of frees, of host work or of one kernel: each is
// predicted by every engine, and memory is held against a count of the bytes that live.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "sim/answer/full_prediction.h"
#include "sim/answer/step_run.h"
#include "sim/report/answer_report.h"
#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

constexpr const char* kHeader =
    R"({"ridgeline":"op-trace","version":1,"producer":"","title":"drawn","precision":"","samples":1,"tokens":16,)"
    R"("parameters":10,"model_flops":100.0,"notes":[]})";
constexpr const char* kEnd = R"({"record":"end"})";
constexpr const char* kStep = R"({"record":"step"})";

struct Drawn {
  std::string text;
  int kernels = 0;             ///< of the last step
  std::int64_t most_held = 0;  ///< bytes at once in the last step, as the file asks for them
  bool allocates = false;      ///< anywhere
};

class Drawing {
 public:
  explicit Drawing(unsigned seed) : chance_(seed) {}

  Drawn draw() {
    line(kHeader);
    kinds_ = pick(std::vector<std::string>{"", "s", "f", "sf", "h", "k", "whe", "sh", "sk", "skfhwe"});
    for (int i = pick({0, 0, 1, 3}); i > 0; --i) storage();
    for (int steps = pick({1, 1, 2, 3}); steps > 0; --steps) {
      drawn_.kernels = 0;
      drawn_.most_held = held_;
      line(kStep);
      for (int i = pick({0, 1, 1, 2, 5, 12}); i > 0 && !kinds_.empty(); --i) record(kinds_[next(kinds_.size())]);
      line(kEnd);
    }
    return std::move(drawn_);
  }

 private:
  std::size_t next(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(chance_); }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[next(from.size())];
  }
  int pick(std::initializer_list<int> from) { return pick(std::vector<int>(from)); }
  void line(const std::string& text) { drawn_.text += text + "\n"; }

  void record(char kind) {
    switch (kind) {
      case 's': return storage();
      case 'f': return free();
      case 'h': return line(R"({"record":"host","class":"linear","times":1})");
      case 'k': return kernel();
      case 'w': return line(R"({"record":"wait"})");
      default: return event();
    }
  }
  void storage() {
    const auto bytes = pick(std::vector<std::int64_t>{0, 1, 512, 1 << 20, 3 << 20, 1 << 28});
    const bool born = next(4) != 0;
    line(fmt::format(R"({{"record":"storage","id":{},"bytes":{},"category":"{}"{}}})", sizes_.size(), bytes,
                     pick(std::vector<std::string>{"weights", "activations", "gradients", "temporaries"}),
                     born ? "" : R"(,"allocated":false)"));
    sizes_.push_back(bytes);
    if (!born || bytes == 0) return;
    alive_.push_back(sizes_.size() - 1);
    held_ += bytes;
    drawn_.most_held = std::max(drawn_.most_held, held_);
    drawn_.allocates = true;
  }
  void free() {
    if (alive_.empty()) return;
    const std::size_t at = next(alive_.size());
    line(fmt::format(R"({{"record":"free","id":{}}})", alive_[at]));
    held_ -= sizes_[alive_[at]];
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void kernel() {
    const std::string op = pick(std::vector<std::string>{
        R"("kind":"norm","rms":false,"backward":false,"bias":true,"type":"bf16","rows":16,"cols":768)",
        R"("kind":"pointwise","function":"arange","rows":1,"cols":16,"input_count":0,"input0":"int64",)"
        R"("input1":"int64","input2":"int64","output":"int64","walk":"contiguous")",
        R"("kind":"matmul","type":"bf16","batch":1,"m":16,"n":64,"k":64,"layout":"nt","bias":false)",
        R"("kind":"reduction","reduction":"sum_rows","type":"bf16","rows":16,"cols":768)"});
    line(fmt::format(R"({{"record":"op","id":{},{}}})", ops_, op));
    const auto operands = [&] {
      std::string list;
      for (std::size_t i = sizes_.empty() ? 0 : next(3); i > 0; --i) {
        const std::size_t storage = next(sizes_.size());
        list += fmt::format("{}[{},{}]", list.empty() ? "" : ",", storage, next(2) == 0 ? 0 : sizes_[storage]);
      }
      return list;
    };
    const std::string in = operands(), out = operands();
    line(fmt::format(R"({{"record":"call","op":{},"in":[{}],"out":[{}],"phase":"forward"}})", ops_++, in, out));
    ++drawn_.kernels;
  }
  void event() {
    if (events_ > 0 && next(2) == 0) {
      line(fmt::format(R"({{"record":"{}","event":{},"stream":0}})", next(2) == 0 ? "wait_event" : "host_waits",
                       next(events_)));
      return;
    }
    line(fmt::format(R"({{"record":"event","event":{},"stream":{}}})", events_++, next(2)));
  }

  std::mt19937 chance_;
  Drawn drawn_;
  std::string kinds_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> alive_;
  std::int64_t held_ = 0;
  int ops_ = 0;
  std::size_t events_ = 0;
};

Scenario scenario_of(const std::string& text) {
  const std::string path = temporary_path("drawn.jsonl");
  std::ofstream(path) << text;
  ScenarioSource source;
  source.file = path;
  source.recording = true;
  source.overrides = {{"hardware", "nvidia-a100-sxm4-80gb", ""}};
  return load_scenario(source);
}

void check(const Drawn& drawn, const std::string& engine) {
  Session session;
  const StepRun run(session, scenario_of(drawn.text), engine);
  const Prediction p = full_prediction(run, {.advice = false, .sensitivity = true});
  EXPECT_TRUE(std::isfinite(p.step.time.value()) && p.step.time >= Seconds{});
  EXPECT_TRUE(std::isfinite(p.step.power.value()) && std::isfinite(p.step.energy.energy.value()));
  EXPECT_LE(p.step.low, p.step.time);
  EXPECT_GE(p.step.high, p.step.time);
  EXPECT_GE(p.step.kernel_count, drawn.kernels);
  EXPECT_EQ(p.step.kernel_count > 0, drawn.kernels > 0);
  EXPECT_TRUE(p.step.time > Seconds{} || drawn.kernels == 0);
  if (drawn.allocates) {
    // Blocks are rounded up to 512 bytes, workspaces come on top.
    EXPECT_GE(p.memory.peak_allocated, drawn.most_held);
    EXPECT_GE(p.memory.peak_reserved, p.memory.peak_allocated);
    (void)answer_memory_snapshot(run);
  }
  const std::string text = answer_text(run, p, Notes::all, {.memory_report = drawn.allocates, .modules = 1});
  EXPECT_THAT(text, ::testing::Not(::testing::ContainsRegex("[^a-z]nan[^a-z]")));
  EXPECT_THAT(answer_timeline(run), ::testing::HasSubstr("traceEvents"));
}

TEST(RandomTraces, AreAllPredicted) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const Drawn drawn = Drawing(seed).draw();
    for (const char* engine : {"analytic", "roofline", "simulate"}) {
      SCOPED_TRACE(fmt::format("seed {}, {}:\n{}", seed, engine, drawn.text));
      try {
        check(drawn, engine);
      } catch (const UserError& error) {
        ADD_FAILURE() << error.what();
      }
      if (HasFailure()) return;
    }
  }
}

// Each begins and ends before the same record.
TEST(RandomTraces, StepsOfNothingHideNoneBehindThem) {
  const std::string kernel =
      R"({"record":"op","id":0,"kind":"matmul","type":"bf16","batch":1,"m":16,"n":64,"k":64,"layout":"nt","bias":false})"
      "\n"
      R"({"record":"call","op":0,"in":[],"out":[],"phase":"forward"})"
      "\n";
  const std::string nothing = std::string(kStep) + "\n" + kEnd + "\n",
                    one = std::string(kStep) + "\n" + kernel + kEnd + "\n";
  const auto kernels = [](const std::string& steps) {
    Session session;
    return StepRun(session, scenario_of(std::string(kHeader) + "\n" + steps), "analytic").step().kernel_count;
  };
  EXPECT_EQ(kernels(one), 1);
  EXPECT_EQ(kernels(nothing + one), 1);
  EXPECT_EQ(kernels(nothing + nothing + one), 1);
  EXPECT_EQ(kernels(one + nothing), 0);
}

}  // namespace
}  // namespace ridgeline
