// Expressions of exercises.
#include "sim/study/exercise/expression.h"

#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

double value(const std::string& text) {
  return evaluate(text, [](const std::string& name) {
    if (name == "a") return 8.0;
    if (name == "b_2") return 3.0;
    throw UserError("no " + name);
  });
}

TEST(Expression, follows_the_usual_rules) {
  EXPECT_DOUBLE_EQ(value("1 + 2 * 3 - 4 / 8"), 6.5);
  EXPECT_DOUBLE_EQ(value("(1 + 2) * -3"), -9);
  EXPECT_DOUBLE_EQ(value("10 - 3 - 2"), 5);
  EXPECT_DOUBLE_EQ(value("64 / 4 / 2"), 8);
  EXPECT_DOUBLE_EQ(value("a*b_2 - --1"), 23);
  EXPECT_DOUBLE_EQ(value("1.5e3 + .5"), 1500.5);
  EXPECT_DOUBLE_EQ(value("min(a, b_2, 5) + max(1, 2) + floor(2.9) + ceil(2.1) + round(2.5) + log2(a)"), 16);
}

TEST(Expression, mistakes_are_told) {
  for (const char* text : {"", "1 +", "(1", "1)", "a b_2", "c", "sqrt(4)", "floor(1, 2)", "min()", "1 $ 2"})
    EXPECT_THROW(value(text), UserError) << text;
  EXPECT_THROW(value(std::string(1000, '(') + "1"), UserError);
  EXPECT_THROW(value(std::string(1000, '-') + "1"), UserError);
}

}  // namespace
}  // namespace ridgeline
