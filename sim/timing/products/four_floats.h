// Arithmetic on one single-precision number or on four at once, written the same way: what the loops over a menu's
// tiles are made of. Both round alike on every machine; nothing here needs more than SSE2.
#pragma once

#include <cstddef>
#include <cstring>

namespace ridgeline {

using FourFloats __attribute__((vector_size(16))) = float;

/// The numbers from `from` on, as many as a T holds.
template <class T>
T loaded(const float* from) {
  T numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return numbers;
}
/// Each the same.
template <class T>
T every(float number) {
  if constexpr (sizeof(T) == sizeof(float)) return number;
  else return T{number, number, number, number};
}

/// Without a branch: `mask` is what a comparison of two T gives.
template <class Mask, class T>
T where(Mask mask, T if_true, T if_false) {
  return mask ? if_true : if_false;
}
/// Whether one of four comparisons came out true.
template <class Mask>
bool any(Mask mask) {
  return ((mask[0] | mask[1]) | (mask[2] | mask[3])) != 0;
}
template <class T>
T larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a < b ? a : b;
}

/// The nearest whole number: adding and taking away 2^23 leaves none of a fraction. Larger numbers have none to lose.
template <class T>
T nearest(T x) {
  constexpr float kWhole = 8388608.0F;
  return (x + kWhole) - kWhole;
}
/// A whole number rounded up to a multiple of 2, 4, 8.
template <class T>
T up_to_2(T x) {
  return 2.0F * nearest(0.5F * x + 0.25F);
}
template <class T>
T up_to_4(T x) {
  return 4.0F * nearest(0.25F * x + 0.375F);
}
template <class T>
T up_to_8(T x) {
  return 8.0F * nearest(0.125F * x + 0.4375F);
}

/// (a⁴ + b⁴)^¼ or up to 0.2 % less: (1 + x)^¼ from below by a polynomial, without a root.
template <class T>
T least_rounded_maximum(T a, T b) {
  const T high = larger(a, b), share = smaller(a, b) / high, square = share * share, x = square * square;
  return high * (1.0F + x * (0.2371F - 0.0493F * x));
}
/// As much of (a⁴ + b⁴ + c⁴ + d⁴)^¼.
template <class T>
T least_rounded_maximum(T a, T b, T c, T d) {
  const T high = larger(larger(a, b), larger(c, d)), per = 1.0F / high;
  const T of_a = a * per, of_b = b * per, of_c = c * per, of_d = d * per;
  const T a_2 = of_a * of_a, b_2 = of_b * of_b, c_2 = of_c * of_c, d_2 = of_d * of_d;
  const T x = (a_2 * a_2 + b_2 * b_2) + (c_2 * c_2 + d_2 * d_2) - 1.0F;
  return high * (1.0F + x * (0.2334F + x * (0.00635F * x - 0.0509F)));
}

/// log2 of numbers of 1 and more, or up to 0.09 less: the bits of a number are its logarithm, but for the line between
/// powers of two.
inline FourFloats least_logarithm(FourFloats x) {
  using FourIntegers __attribute__((vector_size(16))) = int;
  FourIntegers bits;
  std::memcpy(&bits, &x, sizeof bits);
  return __builtin_convertvector(bits - 0x3f800000, FourFloats) * (1.0F / 8388608.0F);
}
inline float least_logarithm(float x) { return least_logarithm(every<FourFloats>(x))[0]; }

/// Place of the least of `count` numbers (1 and more; up to a group of four are read). Of equals one.
inline std::size_t place_of_least(const float* numbers, std::size_t count) {
  FourFloats least = loaded<FourFloats>(numbers), place{0, 1, 2, 3}, its_place = place;
  for (std::size_t i = 4; i < count; i += 4) {
    const auto next = loaded<FourFloats>(numbers + i);
    place += 4.0F;
    its_place = next < least ? place : its_place;
    least = smaller(next, least);
  }
  const int left = least[1] < least[0] ? 1 : 0, right = least[3] < least[2] ? 3 : 2;
  return static_cast<std::size_t>(its_place[least[right] < least[left] ? right : left]);
}

/// How many of each of four pieces cover a whole length of up to some millions; of longer ones one more or less.
inline FourFloats pieces_of(float length, FourFloats pieces) { return nearest((length - 0.5F) / pieces + 0.5F); }

}  // namespace ridgeline
