// Random numbers of one case of a search: the same for the same seed, search and number of the case.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string_view>
#include <vector>

namespace ridgeline::invariants {

class Draw {
 public:
  Draw(std::uint64_t seed, std::string_view search, std::uint64_t index) {
    std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                                     static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)};
    for (const char c : search) words.push_back(static_cast<unsigned char>(c));
    std::seed_seq sequence(words.begin(), words.end());
    random_.seed(sequence);
  }

  /// 0 to below 1.
  double share() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return share() < probability; }
  /// Even in the logarithm.
  double between(double low, double high) { return low * std::pow(high / low, share()); }
  /// Even over whole numbers, both ends included.
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Whole numbers even in the logarithm.
  std::int64_t size(double low, double high) { return std::llround(between(low, high)); }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace ridgeline::invariants
