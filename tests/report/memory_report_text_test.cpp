// Who holds the memory, drawn and told, from a report made by hand: a full page of bars is 56 letters wide.
#include "sim/report/text/memory_report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/output/terminal.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

MemoryReport made_report() {
  MemoryReport r;
  r.peak.phase = Phase::backward, r.peak.layer = 2;
  r.peak_op = "bmm";
  r.allocated = made_gib(40), r.reserved = made_gib(56);
  r.bytes = {made_gib(10), made_gib(8), made_gib(6), made_gib(12), made_gib(3), made_gib(1), 0};
  r.layers = {{-1, {made_gib(1), 0, 0, 0, 0, 0, 0}},
              {0, {0, 5 * kMadeMiB, 0, 7 * kMadeMiB, 0, 0, 0}},
              {1, {0, 5 * kMadeMiB, 0, 7 * kMadeMiB, 0, 0, 0}},
              {2, {0, 0, 0, 0, 3 * kMadeMiB / 2, 0, 0}}};
  r.holders = {{"parameters", Category::weights, Phase::setup, 148, made_gib(10)},
               {"addmm", Category::activations, Phase::forward, 24, made_gib(4)}};
  // One GiB a letter: the fullest stretch fills the page.
  r.stretches = {
      {Phase::forward, -1, 0, made_gib(14), made_gib(28), {made_gib(10), 0, 0, made_gib(4), 0, 0, 0}},
      {Phase::forward, 1, 2, made_gib(20), made_gib(20), {made_gib(10), 0, 0, made_gib(9), 0, 0, made_gib(1)}},
      {Phase::backward,
       2,
       -1,
       made_gib(40),
       made_gib(56),
       {made_gib(10), made_gib(8), made_gib(6), made_gib(12), made_gib(3), made_gib(1), 0}}};
  r.unused = {.segments = 321,
              .free = made_gib(14),
              .largest_free = made_gib(9),
              .whole_segments = made_gib(5),
              .rounding = made_gib(0.25)};
  return r;
}

/// What a row ends with where nothing is held.
std::string blanks(std::size_t columns) { return std::string(columns, ' '); }

TEST(MemoryReportText, DrawsTellsAndAddsUp) {
  EXPECT_EQ(memory_report_text(made_report()), R"(
  memory over the step; a row shows the fullest moment of its stretch
  w weights, g gradients, o optimizer state, a activations, t temporaries, s workspaces, i inputs, .
  cached
  forward   to block 0     14.00 GiB |wwwwwwwwwwaaaa..............
            blocks 1-2     20.00 GiB |wwwwwwwwwwaaaaaaaaai
  backward  from block 2   40.00 GiB |wwwwwwwwwwggggggggooooooaaaaaaaaaaaattts................

  at the peak, in bmm of the backward, block 2: 40.00 GiB allocated, 56.00 GiB reserved
       bytes  share  tensors  category         made by
   10.00 GiB   25 %      148  weights          parameters
    4.00 GiB   10 %       24  activations      addmm (forward)

  MiB at the peak     weights  gradients optimizer  activation temporarie workspaces     inputs
  outside blocks       1024.0)" + blanks(66) + R"(
  blocks 0-1 each                    5.0                   7.0)" +
                                                   blanks(33) + R"(
  block 2                                                             1.5)" +
                                                   blanks(22) + R"(

  fragmentation 14.00 GiB of 56.00 GiB reserved lie unused at the peak (25.0 %), in 321 segments:
                the largest free block is 9.00 GiB; 5.00 GiB in free segments could go back to the
                device. Rounding inside blocks takes 0.25 GiB
)");
}

// One byte more than the letters take and half a letter are where rounding turns; the end of the page is never passed.
TEST(MemoryReportText, ABarIsAsLongAsItsShareOfTheFullest) {
  MemoryReport r = made_report();
  const auto bar_of = [&](const BytesByCategory& bytes, std::int64_t reserved) {
    r.stretches = {{Phase::forward, -1, -1, 0, made_gib(56), {}}, {Phase::forward, 1, 1, 0, reserved, bytes}};
    const std::string text = memory_report_text(r);
    const std::size_t begin = text.find("block 1         0.00 GiB |");
    EXPECT_NE(begin, text.npos) << text;
    return text.substr(begin + 26, text.find('\n', begin) - begin - 26);
  };
  const std::int64_t half = made_gib(0.5);
  EXPECT_EQ(bar_of({half - 1, 0, 0, 0, 0, 0, 0}, half - 1), "");
  EXPECT_EQ(bar_of({half, 0, 0, 0, 0, 0, 0}, half), "w");
  EXPECT_EQ(bar_of({half, half, half, half, 0, 0, 0}, made_gib(3)), "wo.") << "halves add up: 0.5, 1, 1.5 and 2";
  EXPECT_EQ(bar_of({0, made_gib(1), made_gib(1), 0, made_gib(1), made_gib(1), made_gib(1)}, made_gib(7)), "gotsi..");
  EXPECT_EQ(bar_of({made_gib(80), made_gib(1), 0, 0, 0, 0, 0}, made_gib(56)), std::string(56, 'w'));
}

// On 80 columns bars have 36 letters and the columns of the last table seven.
TEST(MemoryReportText, OnANarrowPageAllIsNarrower) {
  set_page_style({80, false});
  MemoryReport r = made_report();
  r.holders[1].op = std::string(60, 'm');
  const std::string text = memory_report_text(r);
  set_page_style({});
  EXPECT_EQ(text, R"(
  memory over the step; a row shows the fullest moment of its stretch
  w weights, g gradients, o optimizer state, a activations, t temporaries, s
  workspaces, i inputs, . cached
  forward   to block 0     14.00 GiB |wwwwwwaaa.........
            blocks 1-2     20.00 GiB |wwwwwwaaaaaai
  backward  from block 2   40.00 GiB |wwwwwwggggggoooaaaaaaaatts..........

  at the peak, in bmm of the backward, block 2: 40.00 GiB allocated, 56.00 GiB
  reserved
       bytes  share  tensors  category         made by
   10.00 GiB   25 %      148  weights          parameters
    4.00 GiB   10 %       24  activations      mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm

  MiB at the peak  weights gradien optimiz activat tempora workspa  inputs
  outside blocks    1024.0)" +
                      blanks(48) + R"(
  blocks 0-1 each              5.0             7.0)" +
                      blanks(24) + R"(
  block 2                                              1.5)" +
                      blanks(16) + R"(

  fragmentation 14.00 GiB of 56.00 GiB reserved lie unused at the peak (25.0 %),
                in 321 segments: the largest free block is 9.00 GiB; 5.00 GiB in
                free segments could go back to the device. Rounding inside
                blocks takes 0.25 GiB
)");
}

// One byte of one is all of it; of nothing at all nobody holds a share.
TEST(MemoryReportText, SharesAreOfWhatIsAllocated) {
  MemoryReport r = made_report();
  r.allocated = 1, r.holders = {{"one", Category::weights, Phase::setup, 7, 1}};
  EXPECT_THAT(memory_report_text(r), HasSubstr("    0.00 GiB  100 %        7  weights          one\n"));
  r.allocated = 0, r.holders[0].bytes = 0;
  EXPECT_THAT(memory_report_text(r), HasSubstr("    0.00 GiB    0 %        7  weights          one\n"));
}

// Rows of blocks that hold the same are one; rows outside of blocks never are.
TEST(MemoryReportText, EqualBlocksShareARowWhereTheyAreNeighbours) {
  MemoryReport r = made_report();
  const BytesByCategory some{made_gib(1), 0, 0, 0, 0, 0, 0}, other{made_gib(2), 0, 0, 0, 0, 0, 0};
  r.layers = {{-1, some}, {0, some}, {1, other}, {2, some}, {3, some}, {4, some}};
  const std::string text = memory_report_text(r);
  const std::string table =
      text.substr(text.find("  outside blocks"), text.find("  fragmentation") - 1 - text.find("  outside blocks"));
  EXPECT_EQ(table, "  outside blocks       1024.0" + blanks(66) + "\n  block 0              1024.0" + blanks(66) +
                       "\n  block 1              2048.0" + blanks(66) + "\n  blocks 2-4 each      1024.0" + blanks(66) +
                       "\n");
}

TEST(MemoryReportText, AStepWithoutAReportSaysWhy) {
  EXPECT_EQ(memory_report_text(MemoryReport{}), "\n  no memory report: the step does not fit\n");
}

TEST(MemoryReportText, PlacesOutsideBlocksAreNotNamed) {
  MemoryReport r = made_report();
  r.peak.layer = -1;
  r.stretches = {{Phase::optimizer, -1, -1, made_gib(1), made_gib(2), {}},
                 {Phase::optimizer, 5, 5, made_gib(1), made_gib(2), {}}};
  const std::string text = memory_report_text(r);
  EXPECT_THAT(text, HasSubstr("\n  optimizer                 1.00 GiB |"));
  EXPECT_THAT(text, HasSubstr("\n            block 5         1.00 GiB |"));
  EXPECT_THAT(text, HasSubstr("in bmm of the backward: 40.00 GiB"));
}

// Eighteen holders: sixteen are shown, the last two add up.
TEST(MemoryReportText, HoldersBeyondTheSixteenthAreOneRow) {
  MemoryReport r = made_report();
  r.holders.clear();
  for (int i = 0; i < 18; ++i)
    r.holders.push_back({"op" + std::to_string(i), Category::gradients, Phase::backward, 10 + i, made_gib(2)});
  const std::string text = memory_report_text(r);
  EXPECT_THAT(text, HasSubstr("op15 (backward)\n    4.00 GiB              53  all others\n"));
  EXPECT_THAT(text, Not(HasSubstr("op16")));
}

TEST(MemoryReportJson, HasEveryNumberUnderItsKey) {
  const json out = json(memory_report_json(made_report()));
  const auto bytes = [](std::array<double, 7> gib) {
    json by;
    const char* names[] = {"weights",     "gradients",  "optimizer_state", "activations",
                           "temporaries", "workspaces", "inputs"};
    for (std::size_t i = 0; i < 7; ++i) by[names[i]] = made_gib(gib[i]);
    return by;
  };
  const json all = bytes({10, 8, 6, 12, 3, 1, 0});
  EXPECT_EQ(out["peak"], (json{{"op", "bmm"},
                               {"phase", "backward"},
                               {"layer", 2},
                               {"allocated_bytes", made_gib(40)},
                               {"reserved_bytes", made_gib(56)},
                               {"breakdown", all}}));
  ASSERT_EQ(out["timeline"].size(), 3U);
  json first = bytes({10, 0, 0, 4, 0, 0, 0});
  first.update({{"phase", "forward"},
                {"first_layer", -1},
                {"last_layer", 0},
                {"allocated_bytes", made_gib(14)},
                {"reserved_bytes", made_gib(28)}});
  EXPECT_EQ(out["timeline"][0], first);
  EXPECT_EQ(out["timeline"][1]["first_layer"], 1);
  EXPECT_EQ(out["timeline"][1]["last_layer"], 2);
  ASSERT_EQ(out["by_layer"].size(), 4U);
  json outside = bytes({1, 0, 0, 0, 0, 0, 0});
  outside["layer"] = -1;
  EXPECT_EQ(out["by_layer"][0], outside);
  EXPECT_EQ(out["by_layer"][3]["layer"], 2);
  EXPECT_EQ(out["by_layer"][3]["temporaries"], 3 * kMadeMiB / 2);
  EXPECT_EQ(out["by_op"], (json{{{"op", "parameters"},
                                 {"category", "weights"},
                                 {"phase", "setup"},
                                 {"tensors", 148},
                                 {"bytes", made_gib(10)}},
                                {{"op", "addmm"},
                                 {"category", "activations"},
                                 {"phase", "forward"},
                                 {"tensors", 24},
                                 {"bytes", made_gib(4)}}}));
  EXPECT_EQ(out["fragmentation"], (json{{"segments", 321},
                                        {"free_bytes", made_gib(14)},
                                        {"free_share", 0.25},
                                        {"largest_free_block_bytes", made_gib(9)},
                                        {"free_segments_bytes", made_gib(5)},
                                        {"rounding_bytes", made_gib(0.25)}}));
}

}  // namespace
}  // namespace ridgeline
