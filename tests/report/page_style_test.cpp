// Text as narrow as a terminal, and its colours.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "sim/answer/full_prediction.h"
#include "sim/output/terminal.h"
#include "sim/report/answer_report.h"
#include "sim/report/text/colours.h"
#include "sim/report/text/prediction_text.h"

namespace ridgeline {
namespace {

/// Sets the style for as long as it lives.
class Styled {
 public:
  explicit Styled(std::size_t width) { set_page_style({width, false}); }
  ~Styled() { set_page_style({}); }
  Styled(const Styled&) = delete;
  Styled& operator=(const Styled&) = delete;
};

/// In characters: what is not ASCII takes several bytes.
std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);)
    most = std::max<std::size_t>(most, static_cast<std::size_t>(std::count_if(
                                           line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; })));
  return most;
}

std::string text_of(const char* hardware) {
  ScenarioSource source;
  source.text =
      std::string("{model: bert-large, training: {micro_batch: 4, sequence_length: 512}, hardware: ") + hardware + "}";
  source.text_name = "test";
  static Session session;
  const StepRun run(session, load_scenario(source), "analytic");
  return answer_text(run, full_prediction(run, {.advice = true, .sensitivity = true}), Notes::folded,
                     {.memory_report = true});
}

TEST(PageStyle, ReportsKeepWithinThePage) {
  for (const std::size_t width : {80u, 100u, 140u}) {
    const Styled style(width);
    for (const char* hardware : {"nvidia-t4", "nvidia-rtx-3090"})
      EXPECT_LE(widest(text_of(hardware)), width) << hardware;
  }
}

TEST(PageStyle, AWiderPageShowsMoreOfNames) {
  const std::string usual = text_of("nvidia-t4");
  const Styled style(160);
  const std::string wide = text_of("nvidia-t4");
  EXPECT_GT(widest(wide), 100u);
  EXPECT_GT(wide.size(), usual.size());
}

TEST(Colours, ChangeNothingButColours) {
  const std::string plain = text_of("nvidia-t4");
  const std::string shown = coloured(plain);
  EXPECT_NE(shown, plain);
  EXPECT_EQ(std::regex_replace(shown, std::regex("\x1b\\[[0-9;]*m"), ""), plain);
}

TEST(Colours, MarkTitleLabelsWarningsAndWhatCanBeTyped) {
  const std::string shown = coloured(
      "A title\n  step time     3 ms (2 ms to 4 ms, estimated)\n    -3 ms   +0.00 GiB  --set a=b\n"
      "  memory        1 GiB; DOES NOT FIT in 0.5 GiB\n                continued here\n");
  EXPECT_TRUE(shown.starts_with("\x1b[1mA title\x1b[0m\n  \x1b[36mstep time\x1b[0m     3 ms")) << shown;
  EXPECT_NE(shown.find("\x1b[33mestimated\x1b[0m)"), shown.npos);
  EXPECT_NE(shown.find("\x1b[1;31mDOES NOT FIT\x1b[0m in"), shown.npos);
  EXPECT_NE(shown.find("\x1b[32m--set a=b\x1b[0m\n"), shown.npos);
  EXPECT_NE(shown.find("\n                continued here\n"), shown.npos);
}

}  // namespace
}  // namespace ridgeline
