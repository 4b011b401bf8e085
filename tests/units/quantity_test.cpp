#include "sim/units/quantity.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace ridgeline {
namespace {

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>, "bytes and seconds do not add");
static_assert(!Addable<Bytes, double>, "a plain number has no unit");
static_assert(Comparable<Seconds, Seconds>);
static_assert(!Comparable<Seconds, Cycles>, "cycles become seconds only by a clock");
static_assert(!std::is_convertible_v<double, Bytes>, "construction is explicit");
static_assert(!std::is_convertible_v<Bytes, double>, "so is the way back");
static_assert(std::is_same_v<decltype(Bytes{} / Seconds{}), BytesPerSecond>);
static_assert(std::is_same_v<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::is_same_v<decltype(Cycles{} / Hertz{}), Seconds>);
static_assert(std::is_same_v<decltype(BytesPerCycle{} * Hertz{}), BytesPerSecond>);
static_assert(std::is_same_v<decltype(Flops{} * JoulesPerFlop{}), Joules>);
static_assert(std::is_same_v<decltype(Watts{} * Seconds{}), Joules>);
static_assert(std::is_same_v<decltype(FlopsPerSecond{} / BytesPerSecond{}), FlopsPerByte>);

TEST(Quantity, arithmetic_keeps_the_value_in_base_units) {
  EXPECT_DOUBLE_EQ((Bytes{4.8e12} / BytesPerSecond{4.8e12}).value(), 1.0);
  EXPECT_DOUBLE_EQ((Cycles{1980} / Hertz{1.98e9}).value(), 1e-6);
  EXPECT_DOUBLE_EQ(ratio(Seconds{3}, Seconds{2}), 1.5);
  EXPECT_LT(microseconds(1.0), microseconds(1.1));
  EXPECT_DOUBLE_EQ(in_microseconds(microseconds(2.5)), 2.5);
}

}  // namespace
}  // namespace ridgeline
