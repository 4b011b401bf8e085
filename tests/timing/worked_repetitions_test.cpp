// Repetitions of an op with several sets of inputs, as an engine that keeps its own caches sees them: which storages
// each kernel is told, and how often the op runs before the time that counts.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/repeated_case.h"

namespace ridgeline::worked_repetitions {
namespace {

/// Writes down what it is asked, a launch a line; the time is the number of the line.
class Recorder final : public TimingEngine {
 public:
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override {
    text_ += fmt::format("{}:", launch.name);
    for (const double share : residency) text_ += fmt::format(" {:.4g}", share);
    text_ += "\n";
    return {};
  }
  [[nodiscard]] std::unique_ptr<TimingRun> start_run() const override {
    return keeps_caches ? std::make_unique<Run>(text_) : nullptr;
  }
  [[nodiscard]] std::string_view name() const override { return "recorder"; }
  [[nodiscard]] const std::string& text() const { return text_; }
  bool keeps_caches = true;

 private:
  class Run final : public TimingRun {
   public:
    explicit Run(std::string& text) : text_(text) {}
    KernelTime next(const KernelLaunch& launch, std::span<const Operand> operands) override {
      text_ += fmt::format("{}", launch.name.empty() ? "unread" : launch.name);
      for (const auto* accesses : {&launch.reads, &launch.writes}) {
        text_ += accesses == &launch.reads ? " reads" : " writes";
        for (const Access& access : *accesses) {
          if (access.operand >= 0) {
            const Operand& place = operands[static_cast<std::size_t>(access.operand)];
            text_ += fmt::format(" {}({})", static_cast<int>(place.storage), place.bytes);
          } else {
            text_ += fmt::format(" {}:{}", access.operand == Access::kTemporary ? "t" : "list", access.bytes);
          }
        }
      }
      text_ += "\n";
      KernelTime time;
      time.time = Seconds{static_cast<double>(++lines_)};
      return time;
    }

   private:
    std::string& text_;
    int lines_ = 0;
  };
  mutable std::string text_;
};

Gpu chip_with_l2(double bytes) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.l2.capacity = Bytes{bytes};
  return gpu;
}
KernelLaunch named(std::string name, std::vector<Access> reads, std::vector<Access> writes) {
  KernelLaunch launch;
  launch.name = std::move(name);
  launch.reads = std::move(reads);
  launch.writes = std::move(writes);
  return launch;
}

// Two inputs of 100 and 40 bytes, a result of 60 by way of 20 that the op keeps to itself: 240 touched bytes. The L2 of
// 150 bytes is forgotten after 600: three repetitions and one more. Sets 0 and 1 take turns; the result stays.
TEST(WorkedRepetitions, inputs_come_anew_until_all_sets_were_used) {
  const std::vector<KernelLaunch> launches{named("first", {{0, 100}, {1, 40}}, {{Access::kTemporary, 20}}),
                                           named("second", {{Access::kTemporary, 20}}, {{2, 60}})};
  Recorder engine;
  const auto times = time_repeated(launches, 2, 2, 0.0, chip_with_l2(150.0), engine, -1);
  EXPECT_EQ(engine.text(),
            "first reads 0(100) 1(40) writes t:20\nsecond reads t:20 writes 2(60)\n"
            "first reads 3(100) 4(40) writes t:20\nsecond reads t:20 writes 2(60)\n"
            "first reads 0(100) 1(40) writes t:20\nsecond reads t:20 writes 2(60)\n"
            "first reads 3(100) 4(40) writes t:20\nsecond reads t:20 writes 2(60)\n");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].time.value(), 7.0) << "of the last repetition";
  EXPECT_EQ(times[1].time.value(), 8.0);
}

// An input that all sets share stays in its place, and takes no other's.
TEST(WorkedRepetitions, an_input_that_all_sets_share_stays) {
  const std::vector<KernelLaunch> launches{named("product", {{0, 100}, {1, 40}}, {{2, 60}})};
  Recorder engine;
  time_repeated(launches, 2, 3, 0.0, chip_with_l2(100.0), engine, 0);
  EXPECT_EQ(engine.text(),
            "product reads 0(100) 1(40) writes 2(60)\n"
            "product reads 0(100) 4(40) writes 2(60)\n"
            "product reads 0(100) 7(40) writes 2(60)\n");
}

// Cold: once. One set: as often as it takes to forget what was there, twice for a set and once more at most.
TEST(WorkedRepetitions, are_as_many_as_the_l2_takes_to_forget_its_start) {
  const std::vector<KernelLaunch> launches{named("op", {{0, 100}}, {})};
  const auto runs = [&](int sets, double l2, double partly_used = 0.0) {
    Recorder engine;
    time_repeated(launches, 1, sets, partly_used, chip_with_l2(l2), engine, -1);
    int count = 0;
    for (std::size_t at = engine.text().find("op reads"); at != std::string::npos;
         at = engine.text().find("op reads", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(runs(0, 1000.0), 1);
  EXPECT_EQ(runs(1, 25.0), 2) << "100 bytes are four L2s: one, and one that counts";
  EXPECT_EQ(runs(1, 26.0), 3);
  EXPECT_EQ(runs(1, 1000.0), 3) << "twice a set";
  EXPECT_EQ(runs(5, 1000.0), 11);
  EXPECT_EQ(runs(5, 200.0), 9);
  EXPECT_EQ(runs(5, 1.0), 2);
  EXPECT_EQ(runs(5, 200.0, 1000.0), 4) << "0.3 of 1,000 bytes were written when a set was made";
}

// What is made of a set and not read passes through the L2 first: 300 bytes less the 100 that are.
TEST(WorkedRepetitions, what_a_set_holds_besides_passes_through_the_l2) {
  const std::vector<KernelLaunch> launches{named("op", {{0, 100}}, {{1, 30}})};
  Recorder engine;
  time_repeated(launches, 1, 1, 1000.0, chip_with_l2(50.0), engine, -1);
  EXPECT_EQ(engine.text(),
            "unread reads list:200 writes\nop reads 0(100) writes 1(30)\n"
            "unread reads list:200 writes\nop reads 0(100) writes 1(30)\n");
  Recorder cold;
  time_repeated(launches, 1, 0, 1000.0, chip_with_l2(50.0), cold, -1);
  EXPECT_EQ(cold.text(), "op reads 0(100) writes 1(30)\n");
}

// Lists become operands of their own: those that are read come anew, also where they are written; those that are only
// written stay.
TEST(WorkedRepetitions, lists_of_tensors_are_operands_of_their_own) {
  const auto of_list = [](int list, double bytes) {
    return Access{.operand = Access::kUntracked, .bytes = bytes, .list = list, .to = 1.0};
  };
  const std::vector<KernelLaunch> launches{
      named("lists", {of_list(0, 70), of_list(1, 80)}, {of_list(1, 80), of_list(2, 90)}),
      named("next", {{0, 10}}, {{1, 5}})};
  Recorder engine;
  time_repeated(launches, 1, 2, 0.0, chip_with_l2(250.0), engine, -1);
  EXPECT_EQ(engine.text(),
            "lists reads 2(70) 3(80) writes 3(80) 4(90)\nnext reads 0(10) writes 1(5)\n"
            "lists reads 7(70) 8(80) writes 8(80) 4(90)\nnext reads 5(10) writes 1(5)\n"
            "lists reads 2(70) 3(80) writes 3(80) 4(90)\nnext reads 0(10) writes 1(5)\n"
            "lists reads 7(70) 8(80) writes 8(80) 4(90)\nnext reads 5(10) writes 1(5)\n");
}

// An engine without caches is told what hits.
TEST(WorkedRepetitions, engines_without_caches_are_told_what_hits) {
  Recorder engine;
  engine.keeps_caches = false;
  Gpu gpu = chip_with_l2(1000.0);
  gpu.l2.resident_full = 0.5, gpu.l2.resident_none = 1.0, gpu.l2.dirty_fraction = 0.25;
  const std::vector<KernelLaunch> launches{named("a", {{0, 300}}, {{Access::kTemporary, 100}}),
                                           named("b", {{Access::kTemporary, 100}}, {{1, 50}})};
  // Two sets of 300 and 150 that stay are 750 between a set's uses: half of the ramp. Results after 450 and 250.
  time_repeated(launches, 1, 2, 0.0, gpu, engine, -1);
  EXPECT_EQ(engine.text(), "a: 0.5 1\nb: 1 1\n");
}

// Of lists, those that are read come anew: two sets of 400 and 400 that stay are beyond the ramp of 1,000, while one
// set is in its middle. What is written alone stays.
TEST(WorkedRepetitions, lists_that_are_read_rotate_and_those_that_are_written_stay) {
  L2Spec l2;
  l2.capacity = Bytes{1000.0};
  l2.resident_full = 0.5, l2.resident_none = 1.0;
  const auto of_list = [](int list, double bytes) {
    return Access{.operand = Access::kUntracked, .bytes = bytes, .list = list, .to = 1.0};
  };
  const std::vector<KernelLaunch> read_only{named("norm", {of_list(0, 400)}, {{Access::kTemporary, 100}})};
  EXPECT_EQ(repeated_residency(read_only, 0, 2, l2)[0][0], (1000.0 - 900.0) / 500.0);
  EXPECT_EQ(repeated_residency(read_only, 0, 3, l2)[0][0], 0.0);
  const std::vector<KernelLaunch> in_place{named("mul", {of_list(0, 400)}, {of_list(0, 400)})};
  EXPECT_EQ(repeated_residency(in_place, 0, 2, l2)[0], (std::vector<double>{0.4, (1000.0 - 800.0 / 1.35) / 500.0}));
  const std::vector<KernelLaunch> copied{named("copy", {of_list(0, 300)}, {of_list(1, 300)})};
  EXPECT_EQ(repeated_residency(copied, 0, 2, l2)[0][0], (1000.0 - 900.0) / 500.0);
  EXPECT_EQ(repeated_residency(copied, 0, 4, l2)[0], (std::vector<double>{0.0, 1.0}))
      << "600 bytes until it is written";
}

// A clean L2 takes a quarter of its 1,000 bytes of writes, one buffer after the other; what was written once is found.
TEST(WorkedRepetitions, a_clean_l2_takes_writes_until_it_is_full_of_them) {
  L2Spec l2;
  l2.capacity = Bytes{1000.0};
  l2.resident_full = 0.5, l2.resident_none = 1.0, l2.dirty_fraction = 0.25;
  const std::vector<KernelLaunch> launches{named("a", {{0, 40}}, {{1, 200}, {2, 100}}),
                                           named("b", {{2, 100}}, {{3, 30}, {1, 200}, {4, 0}})};
  const auto shares = repeated_residency(launches, 1, 0, l2);
  EXPECT_EQ(shares[0], (std::vector<double>{0.0, 1.0, 0.5}));
  EXPECT_EQ(shares[1], (std::vector<double>{1.0, 0.0, 1.0, 0.0}));
  const std::vector<KernelLaunch> small{named("a", {{0, 40}}, {{1, 100}, {2, 100}, {3, 100}})};
  EXPECT_EQ(repeated_residency(small, 1, 0, l2)[0], (std::vector<double>{0.0, 1.0, 1.0, 0.5}));
}

// What a launch of an L2 of 100 bytes leaves dirty is found up to 135 bytes later; one of 130 bytes does not make it
// forgotten, however near its end the ramp is.
TEST(WorkedRepetitions, the_ends_of_the_ramp_of_a_small_l2_are_kept) {
  L2Spec l2;
  l2.capacity = Bytes{100.0};
  l2.resident_full = 0.5, l2.resident_none = 1.0;
  L2Residency residency(l2);
  std::vector<double> shares;
  residency.visit(named("write", {}, {{0, 1}}), std::vector{Operand{0, 1}}, shares);
  residency.visit(named("read", {{0, 130}}, {}), std::vector{Operand{1, 130}}, shares);
  residency.visit(named("write", {}, {{0, 1}}), std::vector{Operand{0, 1}}, shares);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_NEAR(shares[0], (100.0 - 131.0 / 1.35) / 50.0, 0.02);
  EXPECT_GT(shares[0], 0.0);
}

}  // namespace
}  // namespace ridgeline::worked_repetitions
