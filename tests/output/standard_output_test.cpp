#include "sim/output/standard_output.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(StandardOutput, shows_controls_of_somebody_elses_text_instead_of_obeying_them) {
  EXPECT_EQ(without_controls("a\x1b[31mred\x07\r\x7f"), "a^[[31mred^G^M^?");
  EXPECT_EQ(without_controls(std::string_view("nul\0end", 7)), "nul^@end");
}

TEST(StandardOutput, leaves_lines_tabulators_and_other_languages_as_they_are) {
  const char* text = "a\tb\nµs · Größe 時間\n";
  EXPECT_EQ(without_controls(text), text);
}

}  // namespace
}  // namespace ridgeline
