// In which order a product's tiles are handed out, and which panels of the operands a run of them needs.
//
// rows: along n first (a row of C after the other); columns: along m first; groups: eight tile rows at a time, column
// by column in them, which `automatic` takes too. Splits of k follow one another, batches are outermost.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

class TileRaster {
 public:
  TileRaster(const GemmWork& work, const Gpu& gpu);

  [[nodiscard]] std::int64_t tiles() const { return rows_ * columns_ * work_.batch * work_.split_k; }
  /// Panels that tiles [first, last) need, each once: (batch · panels + panel) · panel_splits + split.
  void panels(std::int64_t first, std::int64_t last, std::vector<std::int64_t>& a, std::vector<std::int64_t>& b) const;
  [[nodiscard]] int panel_splits() const { return work_.split_k; }
  /// Where a panel of A or B begins and ends in its operand, as shares of it.
  [[nodiscard]] std::pair<double, double> extent(bool of_a, std::int64_t panel) const;

 private:
  GemmWork work_;
  std::int64_t rows_, columns_, group_;  ///< tiles along m and n; rows of tiles in a group
};

}  // namespace ridgeline
