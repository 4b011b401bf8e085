// Physical quantities whose arithmetic does not compile when it is wrong.
//
// A Quantity is a double in base units (byte, flop, second, cycle, joule) with the exponents of those units in its
// type: Bytes / Seconds is BytesPerSecond, Cycles / Hertz is Seconds, Bytes + Seconds is an error. Construction from a
// number and the way back (`value()`) are explicit. Tested by tests/units/quantity_test.cpp.
#pragma once

#include <compare>

namespace ridgeline {

template <int Byte, int Flop, int Second, int Cycle, int Joule>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// The magnitude in base units (bytes, flops, seconds, cycles, joules and their products).
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator+(Quantity other) const { return Quantity{value_ + other.value_}; }
  constexpr Quantity operator-(Quantity other) const { return Quantity{value_ - other.value_}; }
  constexpr Quantity operator-() const { return Quantity{-value_}; }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity operator*(double factor) const { return Quantity{value_ * factor}; }
  constexpr Quantity operator/(double divisor) const { return Quantity{value_ / divisor}; }
  friend constexpr Quantity operator*(double factor, Quantity q) { return q * factor; }

 private:
  double value_ = 0.0;
};

template <int B1, int F1, int S1, int C1, int J1, int B2, int F2, int S2, int C2, int J2>
constexpr auto operator*(Quantity<B1, F1, S1, C1, J1> a, Quantity<B2, F2, S2, C2, J2> b) {
  return Quantity<B1 + B2, F1 + F2, S1 + S2, C1 + C2, J1 + J2>{a.value() * b.value()};
}
template <int B1, int F1, int S1, int C1, int J1, int B2, int F2, int S2, int C2, int J2>
constexpr auto operator/(Quantity<B1, F1, S1, C1, J1> a, Quantity<B2, F2, S2, C2, J2> b) {
  return Quantity<B1 - B2, F1 - F2, S1 - S2, C1 - C2, J1 - J2>{a.value() / b.value()};
}
/// The ratio of two quantities of one kind is a plain number.
template <int B, int F, int S, int C, int J>
constexpr double ratio(Quantity<B, F, S, C, J> a, Quantity<B, F, S, C, J> b) {
  return a.value() / b.value();
}

using Bytes = Quantity<1, 0, 0, 0, 0>;
using Flops = Quantity<0, 1, 0, 0, 0>;
using Seconds = Quantity<0, 0, 1, 0, 0>;
using Cycles = Quantity<0, 0, 0, 1, 0>;
using Joules = Quantity<0, 0, 0, 0, 1>;
using Hertz = Quantity<0, 0, -1, 1, 0>;  ///< clock cycles a second
using BytesPerSecond = Quantity<1, 0, -1, 0, 0>;
using FlopsPerSecond = Quantity<0, 1, -1, 0, 0>;
using BytesPerCycle = Quantity<1, 0, 0, -1, 0>;
using FlopsPerCycle = Quantity<0, 1, 0, -1, 0>;
using FlopsPerByte = Quantity<-1, 1, 0, 0, 0>;  ///< arithmetic intensity
using Watts = Quantity<0, 0, -1, 0, 1>;
using JoulesPerFlop = Quantity<0, -1, 0, 0, 1>;
using JoulesPerByte = Quantity<-1, 0, 0, 0, 1>;

constexpr Seconds microseconds(double us) { return Seconds{us * 1e-6}; }
constexpr double in_microseconds(Seconds t) { return t.value() * 1e6; }
constexpr double in_milliseconds(Seconds t) { return t.value() * 1e3; }

inline constexpr double kKiB = 1024.0, kMiB = 1048576.0, kGiB = 1073741824.0;

}  // namespace ridgeline
