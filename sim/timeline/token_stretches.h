// Stretches of a token's launches that find the same in the L2 wherever they come again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/timeline/token_launches.h"

namespace ridgeline {

/// Launches in a row that are visited together: behind one after which nothing older is left, up to the next.
struct Stretch {
  struct Visited {
    std::uint32_t place = 0;
    bool of_token_before = false;
    std::vector<Operand> operands;  ///< numbered
  };
  std::vector<Visited> visited;
  std::size_t first = 0;     ///< the first whose shares are asked
  std::uint32_t kernel = 0;  ///< of the first
  std::size_t storages = 0;
  bool varies = false;
};

/// The stretches of the tokens of a shape, each different one once.
class StretchesOfShape {
 public:
  using Cuts = std::function<bool(const TokenLaunches::Place&)>;
  /// `cuts`: whether nothing older is left behind a launch.
  StretchesOfShape(const TokenLaunches& launches, std::size_t shape, std::size_t before, const Cuts& cuts);
  [[nodiscard]] const std::vector<Stretch>& different() const { return stretches_; }
  [[nodiscard]] const std::vector<std::uint32_t>& kernel_of() const { return kernel_of_; }
  [[nodiscard]] std::uint32_t kernels() const { return kernels_; }

 private:
  void add(std::uint32_t old_begin, std::uint32_t old_end, bool with_old, std::uint32_t begin, std::uint32_t end);

  const TokenLaunches& launches_;
  std::size_t shape_, before_;
  std::vector<Stretch> stretches_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> known_;  ///< first kernel
  std::vector<std::uint32_t> kernel_of_;
  std::uint32_t kernels_ = 0;
};

}  // namespace ridgeline
