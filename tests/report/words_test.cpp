// Words and numbers that all reports share.
#include <gtest/gtest.h>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/number_words.h"

namespace ridgeline {
namespace {

TEST(NumberWords, HaveFourDigitsAndNoExponent) {
  EXPECT_EQ(four_digits(0.0), "0");
  EXPECT_EQ(four_digits(0.85314), "0.8531");
  EXPECT_EQ(four_digits(13.0549), "13.05");
  EXPECT_EQ(four_digits(999.94), "999.9");
  EXPECT_EQ(four_digits(999.96), "1,000");
  EXPECT_EQ(four_digits(6683.4), "6,683");
  EXPECT_EQ(four_digits(238123.0), "238,100");
  EXPECT_EQ(four_digits(12345678.0), "12,350,000");
  EXPECT_EQ(thousands(1410.4), "1,410");
  EXPECT_EQ(thousands(999.0), "999");
  EXPECT_EQ(thousands(1234567.0), "1,234,567");
}

/// In lines of `width`: the margin takes the rest of a page of 100 columns and is left out.
std::string wrapped_at(std::size_t width, const std::string& text) {
  const std::size_t margin = 100 - width;
  std::string page, out;
  write_wrapped(page, std::string(margin, '.'), text);
  while (!page.empty()) {
    const std::size_t end = page.find('\n') + 1;
    out += page.substr(margin, end - margin);
    page.erase(0, end);
  }
  return out;
}

TEST(WrappedText, BreaksAtTheLastSpaceThatFits) {
  EXPECT_EQ(wrapped_at(10, "one two three four"), "one two\nthree four\n");
  EXPECT_EQ(wrapped_at(10, "0123456789"), "0123456789\n");
  EXPECT_EQ(wrapped_at(10, "0123456789 a"), "0123456789\na\n") << "a line may be full";
}

TEST(WrappedText, AWordLongerThanALineLosesNoLetter) {
  EXPECT_EQ(wrapped_at(10, "0123456789abcdefghijKLM"), "0123456789\nabcdefghij\nKLM\n");
}

TEST(WrappedText, ABlankInFrontIsNoPlaceToBreak) {
  EXPECT_EQ(wrapped_at(10, " 0123456789ab"), " 012345678\n9ab\n");
  EXPECT_EQ(wrapped_at(10, "a 0123456789b"), "a\n0123456789\nb\n") << "behind a single letter it is one";
  EXPECT_EQ(wrapped_at(10, "one two  three"), "one two \nthree\n");
  EXPECT_EQ(wrapped_at(10, ""), "");
}

TEST(WrappedText, TheMarginStandsOnceAndItsWidthBelow) {
  std::string out;
  write_wrapped(out, "  note: ", std::string(92, 'a') + " b");
  EXPECT_EQ(out, "  note: " + std::string(92, 'a') + "\n        b\n");
}

TEST(MemoryWords, AShortageSaysWhereNotHowMuchTheStepLacks) {
  MemoryShortage oom;
  oom.op = "bmm", oom.phase = Phase::backward, oom.layer = 0, oom.category = Category::optimizer_state;
  oom.requested_bytes = 3 << 20, oom.missing_bytes = 1 << 20;
  EXPECT_EQ(shortage_words(oom), "in bmm of the backward, block 0, at 3.00 MiB of optimizer state");
  oom.layer = -1;
  EXPECT_EQ(shortage_words(oom), "in bmm of the backward, at 3.00 MiB of optimizer state");
  oom.phase = Phase::setup;
  EXPECT_EQ(shortage_words(oom), "setting up, at 3.00 MiB of optimizer state");
  oom.held = {4, 3, 9, 2, 1, 8, 0};
  EXPECT_EQ(largest_category(oom), static_cast<std::size_t>(Category::optimizer_state));
  oom.held = {4, 9, 9, 2, 1, 8, 0};
  EXPECT_EQ(largest_category(oom), static_cast<std::size_t>(Category::gradients)) << "the first of equals";
}

TEST(MemoryWords, ChangesAreOptionsOfTheCommandLine) {
  const std::vector<std::string> changes{"a=1", "b=2 c=3 d=4"};
  EXPECT_EQ(as_sets(changes), "--set a=1 --set b=2 --set c=3 --set d=4");
  EXPECT_EQ(gib(std::int64_t{5} << 29), "2.50 GiB");
  EXPECT_EQ(words("optimizer_state"), "optimizer state");
}

}  // namespace
}  // namespace ridgeline
