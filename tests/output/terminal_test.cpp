#include "sim/output/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ridgeline {
namespace {

TEST(Terminal, FilesAndPipesAreAsWideEverywhereAndWithoutColours) {
  EXPECT_EQ(style_of(false, 237, nullptr, "xterm-256color"), (PageStyle{100, false}));
}

TEST(Terminal, APageIsAsWideAsItsTerminalWithinReason) {
  for (const auto& [columns, width] : std::initializer_list<std::pair<std::size_t, std::size_t>>{{0, 100},  // not known
                                                                                                 {1, 80},
                                                                                                 {40, 80},
                                                                                                 {79, 80},
                                                                                                 {80, 80},
                                                                                                 {81, 81},
                                                                                                 {120, 120},
                                                                                                 {399, 399},
                                                                                                 {400, 400},
                                                                                                 {401, 400},
                                                                                                 {5000, 400}})
    EXPECT_EQ(style_of(true, columns, nullptr, "xterm"), (PageStyle{width, true})) << columns;
  EXPECT_EQ(kNarrowestPage, 80u);
  EXPECT_EQ(kWidestPage, 400u);
}

TEST(Terminal, ColoursCanBeRefused) {
  EXPECT_TRUE(style_of(true, 100, nullptr, "xterm").colours);
  EXPECT_TRUE(style_of(true, 100, "", nullptr).colours);
  EXPECT_FALSE(style_of(true, 100, "1", "xterm").colours);
  EXPECT_FALSE(style_of(true, 100, "1", nullptr).colours);
  EXPECT_FALSE(style_of(true, 100, "0", "xterm").colours) << "any word refuses them (no-color.org)";
  EXPECT_FALSE(style_of(true, 100, nullptr, "dumb").colours);
  EXPECT_FALSE(style_of(true, 100, "", "dumb").colours);
  EXPECT_TRUE(style_of(true, 100, nullptr, "dumber").colours);
}

/// Standard output leads to `descriptor`, and the style of the process is as before at the end.
class OutputTo {
 public:
  explicit OutputTo(int descriptor) {
    std::fflush(stdout);
    before_ = ::dup(STDOUT_FILENO);
    ::dup2(descriptor, STDOUT_FILENO);
  }
  ~OutputTo() {
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
    set_page_style(style_);
  }
  OutputTo(const OutputTo&) = delete;
  OutputTo& operator=(const OutputTo&) = delete;

 private:
  int before_ = -1;
  PageStyle style_ = page_style();
};

TEST(Terminal, TheProcessKeepsTheStyleThatItWasGiven) {
  const OutputTo same(STDOUT_FILENO);
  EXPECT_EQ(page_style(), PageStyle{});
  set_page_style({123, true});
  EXPECT_EQ(page_style(), (PageStyle{123, true}));
  EXPECT_EQ(page_width(), 123u);
}

TEST(Terminal, TheProgramFollowsTheTerminalOfItsOutput) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) GTEST_SKIP() << "no terminal can be made";
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  winsize size{};
  size.ws_row = 50, size.ws_col = 133;
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  PageStyle followed, refused, of_file;
  {
    const OutputTo screen(terminal);
    follow_terminal();
    followed = page_style();
    ::setenv("NO_COLOR", "1", 1);
    follow_terminal();
    refused = page_style();
    ::unsetenv("NO_COLOR");
    const int null = ::open("/dev/null", O_WRONLY);
    const OutputTo file(null);
    follow_terminal();
    of_file = page_style();
    ::close(null);
  }
  ::close(terminal);
  ::close(master);
  EXPECT_EQ(followed, (PageStyle{133, true}));
  EXPECT_EQ(refused, (PageStyle{133, false}));
  EXPECT_EQ(of_file, (PageStyle{100, false}));
}

}  // namespace
}  // namespace ridgeline
