#include "sim/output/terminal.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(Terminal, FilesAndPipesAreAsWideEverywhereAndWithoutColours) {
  EXPECT_EQ(style_of(false, 237, nullptr, "xterm-256color"), (PageStyle{100, false}));
}

TEST(Terminal, APageIsAsWideAsItsTerminalWithinReason) {
  EXPECT_EQ(style_of(true, 120, nullptr, "xterm").width, 120u);
  EXPECT_EQ(style_of(true, 40, nullptr, "xterm").width, kNarrowestPage);
  EXPECT_EQ(style_of(true, 5000, nullptr, "xterm").width, kWidestPage);
  EXPECT_EQ(style_of(true, 0, nullptr, "xterm").width, 100u);  // one that does not say
}

TEST(Terminal, ColoursCanBeRefused) {
  EXPECT_TRUE(style_of(true, 100, nullptr, "xterm").colours);
  EXPECT_TRUE(style_of(true, 100, "", nullptr).colours);
  EXPECT_FALSE(style_of(true, 100, "1", "xterm").colours);
  EXPECT_FALSE(style_of(true, 100, nullptr, "dumb").colours);
}

}  // namespace
}  // namespace ridgeline
