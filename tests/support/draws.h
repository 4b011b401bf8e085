// Seeds that change from run to run, for laws that must hold for any numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace ridgeline::testing_support {

/// RIDGELINE_TEST_SEED where it is set, else another one every time. Tests print it with what fails.
inline std::uint64_t changing_seed() {
  if (const char* given = std::getenv("RIDGELINE_TEST_SEED")) return std::stoull(given);
  return std::random_device{}();
}

/// Draws numbers and factors evenly on a logarithmic scale.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  double between(double low, double high) { return low * std::pow(high / low, uniform_(random_)); }
  double share() { return uniform_(random_); }
  std::size_t index(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

 private:
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

}  // namespace ridgeline::testing_support
