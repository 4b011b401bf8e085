// Numbers of a chip as tables: its sheet, what a calibration changed, and what a refit found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/report/text/calibration_text.h"
#include "sim/report/text/hardware_text.h"
#include "sim/report/text/refit_text.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

SheetRow made_row(const char* key, const char* value, const char* unit, const char* source) {
  return {key, value, unit, source, {}, "", ""};
}

HardwareSheet made_sheet() {
  HardwareSheet sheet;
  sheet.name = "a-chip", sheet.title = "A chip";
  sheet.values = {made_row("no.such.key", "4.8", "TB/s", "a datasheet"),
                  made_row("another", "29 cycles", "cycles", "")};
  sheet.values[0].spread = 0.025;
  sheet.values[1].inherited = "ampere-8.6", sheet.values[1].source = "measured";
  sheet.assumed = {made_row("not.there", "7", "", "")};
  sheet.derived = {made_row("ridge", "153", "FLOP/B", "peak / bandwidth")};
  return sheet;
}

TEST(HardwareText, HasEachValueWithItsSource) {
  EXPECT_EQ(hardware_text(made_sheet()), R"(a-chip: A chip

  no.such.key                    4.8 TB/s ± 2.5 %
      a datasheet
  another                        29 cycles
      inherited from ampere-8.6: measured

not in the file, so assumed
  not.there                      7

derived
  ridge                          153 FLOP/B
      peak / bandwidth
)");
  HardwareSheet whole = made_sheet();
  whole.assumed.clear();
  whole.values[0].key = "dram.bandwidth";
  EXPECT_THAT(hardware_text(whole), Not(HasSubstr("assumed")));
  EXPECT_THAT(hardware_text(whole), HasSubstr("      a datasheet\n      read by: "));
}

TEST(HardwareText, LongSourcesAreBrokenAtSpaces) {
  HardwareSheet sheet = made_sheet();
  sheet.values = {made_row("key", "1", "", "")};
  sheet.values[0].source = std::string(70, 'a') + " bcd e";
  EXPECT_THAT(hardware_text(sheet), HasSubstr("      " + std::string(70, 'a') + " bcd\n      e\n"));
}

// Sources have 74 columns.
TEST(HardwareText, WordsLongerThanALineAreBrokenWhereItEnds) {
  const auto lines_of = [](const std::string& source) {
    HardwareSheet sheet = made_sheet();
    sheet.values = {made_row("key", "1", "", "")};
    sheet.values[0].source = source;
    const std::string text = hardware_text(sheet), head = "  key                            1\n";
    const std::size_t begin = text.find(head) + head.size();
    return text.substr(begin, text.find("\nnot in the file") - begin);
  };
  const auto a = [](std::size_t count) { return std::string(count, 'a'); };
  EXPECT_EQ(lines_of(a(74)), "      " + a(74) + "\n");
  EXPECT_EQ(lines_of(a(75)), "      " + a(74) + "\n      a\n");
  EXPECT_EQ(lines_of(a(200)), "      " + a(74) + "\n      " + a(74) + "\n      " + a(52) + "\n");
  EXPECT_EQ(lines_of(a(74) + " b"), "      " + a(74) + "\n      b\n");
  EXPECT_EQ(lines_of(a(73) + " b"), "      " + a(73) + "\n      b\n");
  EXPECT_EQ(lines_of(a(72) + " b"), "      " + a(72) + " b\n");
  EXPECT_EQ(lines_of("b " + a(80)), "      b\n      " + a(74) + "\n      " + a(6) + "\n");
  EXPECT_EQ(lines_of(" " + a(80)), "       " + a(73) + "\n      " + a(7) + "\n") << "a blank in front breaks nothing";
}

// Values have 46 columns, and the rest of them stands below.
TEST(HardwareText, LongValuesGoOnBelowTheirBeginning) {
  HardwareSheet sheet = made_sheet();
  const std::string forty(40, '1');
  sheet.values = {made_row("key", (forty + " 22222 33333").c_str(), "TB/s", "a source")};
  EXPECT_THAT(hardware_text(sheet), HasSubstr("  key                            " + forty + " 22222\n" +
                                              std::string(33, ' ') + "33333 TB/s\n      a source\n"));
}

TEST(HardwareJson, HasEachValueWithItsSource) {
  const json out = json(hardware_json(made_sheet()));
  EXPECT_EQ(out["name"], "a-chip");
  EXPECT_EQ(out["title"], "A chip");
  EXPECT_EQ(out["values"]["no.such.key"],
            (json{{"value", "4.8"}, {"unit", "TB/s"}, {"source", "a datasheet"}, {"spread", 0.025}}));
  EXPECT_EQ(out["values"]["another"]["inherited_from"], "ampere-8.6");
  EXPECT_EQ(out["assumed"]["not.there"]["value"], "7");
  EXPECT_EQ(out["derived"]["ridge"]["unit"], "FLOP/B");
}

// 108 SMs of 64 multiply-adds at 1410 MHz are 19.5 TFLOP/s, 1024 on the tensor cores 312.
TEST(HardwareList, HasARowAChipInTheUnitsOfItsHeading) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb", {}, Numbers::datasheet);
  gpu.dram.capacity = Bytes{79.5 * kGiB}, gpu.l2.capacity = Bytes{40 * kMiB};
  gpu.dram.bandwidth = BytesPerSecond{2.039e12};
  EXPECT_EQ(hardware_list({&gpu, 1}),
            R"(name                      SMs boost    fp32 fp16 TC memory bandwidth   L2 limit
                                MHz TFLOP/s TFLOP/s    GiB      GB/s  MiB     W
nvidia-a100-sxm4-80gb     108  1410    19.5     312   79.5      2039   40   400
)");
}

// 2 to 2.5 is a quarter more; 0 to 3 is new.
TEST(CalibrationText, SaysWhatMovedAndWhatWasKept) {
  HardwareSheet before, after;
  after.title = "A chip";
  before.values = {made_row("a", "2", "TB/s", ""), made_row("b", "0", "us", ""), made_row("c", "5", "us", "")};
  after.values = {made_row("a", "2.5", "TB/s", ""), made_row("b", "3", "us", ""), made_row("c", "5", "us", "")};
  after.values[0].spread = 0.0123;
  Calibration calibration;
  calibration.from_probe = {"a", "b", "c", "missing"};
  calibration.conditions = {"on a Monday"};
  calibration.rows = {after.values[0], made_row("kept", "0.5", "", "counters")};
  const std::vector<MovedPrediction> moved{{"a step", Seconds{0.2}, Seconds{0.15}}};
  EXPECT_EQ(calibration_text(before, after, calibration, moved), R"(A chip
measured on a Monday

from the microkernels                before            after difference   spread
a                                    2 TB/s         2.5 TB/s    +25.0 %    1.2 %
b                                      0 us             3 us        new         )"
                                                                 R"(
c                                      5 us             5 us       same         )"
                                                                 R"(

kept, the microkernels do not tell
kept                                    0.5   counters

predictions (analytic)                   before        after difference
a step                                   200 ms       150 ms    -25.0 %
)");
}

// A key that only one of the sheets has is left out, on either side; the heading of what was kept stands once.
TEST(CalibrationText, LeavesOutWhatOneSheetLacksAndHasOneHeading) {
  HardwareSheet before, after;
  before.values = {made_row("gone", "2", "us", "")}, after.values = {made_row("new", "3", "us", "")};
  Calibration calibration;
  calibration.from_probe = {"gone", "new"};
  calibration.rows = {made_row("one", "0.5", "", "a"), made_row("two", "0.7", "", "b")};
  const std::string text = calibration_text(before, after, calibration, {});
  EXPECT_THAT(text, HasSubstr("difference   spread\n\nkept, the microkernels do not tell\n"
                              "one                                     0.5   a\n"
                              "two                                     0.7   b\n\npredictions"));
}

TEST(RefitText, SaysWhatWasFittedAndHowWell) {
  RefitResult result;
  const TiedNumbers &first = tied_numbers()[0], &second = tied_numbers()[1];
  result.numbers = {{&first, 1.2346, 6.78, true}, {&second, 2.0, 9.0, false}};
  RefitErrors all;
  all.family = "all";
  all.before = {.n = 321, .median = 10.1, .mean = 20.2};
  all.fitted = {.n = 321, .median = 3.3, .mean = 4.4};
  all.unseen = {.n = 321, .median = 5.5, .mean = 6.6};
  result.errors = {all};
  const auto padded = [](std::string_view name) { return std::string(name) + std::string(14 - name.size(), ' '); };
  EXPECT_EQ(refit_text(result), "number          factor     sd  what\n" +                                             //
                                    padded(first.name) + "   1.235  6.8 %  " + std::string(first.what) + "\n" +       //
                                    padded(second.name) + "       1         " + std::string(second.what) +            //
                                    ": not settled by these rows, as it was\n"                                        //
                                    "\n                                before            fitted     not fitted on\n"  //
                                    "error in %         n   median     mean   median     mean   median     mean\n"    //
                                    "all              321     10.1     20.2      3.3      4.4      5.5      6.6\n");
}

}  // namespace
}  // namespace ridgeline
