// Division rounded up: blocks that cover a length, waves that cover blocks.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace ridgeline {

/// For a ≥ 0, b > 0.
template <std::integral A, std::integral B>
constexpr std::int64_t ceil_div(A a, B b) {
  return (static_cast<std::int64_t>(a) + b - 1) / b;
}
/// The same on doubles that hold whole numbers or their quotients; the tiny slack absorbs rounding of a quotient.
template <typename A, typename B>
requires(std::floating_point<A> || std::floating_point<B>) inline double ceil_div(A a, B b) {
  return std::ceil(static_cast<double>(a) / static_cast<double>(b) - 1e-9);
}

}  // namespace ridgeline
