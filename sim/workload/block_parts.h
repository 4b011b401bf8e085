// Parts of each block are kept between its forward and its backward pass, run again, or sent to the host's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline {

/// Parts that torch.utils.checkpoint runs again, each by itself, and whole blocks; `offload` sends what the rest of the
/// block saves to pinned memory (torch.autograd.graph.save_on_cpu around the block).
enum class BlockPart : std::uint8_t {
  block = 1,         ///< all of it: its input is kept alone
  attention = 2,     ///< the attention module, with its projections
  feed_forward = 4,  ///< the feed-forward module
  activation = 8,    ///< the activation function of the feed-forward module
  offload = 16
};
inline constexpr std::array<std::pair<std::string_view, BlockPart>, 5> kBlockParts{
    {{"block", BlockPart::block},
     {"attention", BlockPart::attention},
     {"feed-forward", BlockPart::feed_forward},
     {"activation", BlockPart::activation},
     {"offload", BlockPart::offload}}};

/// A bit a BlockPart for each block; a block beyond the list is as the last one, and with an empty list all are kept.
struct BlockTreatments {
  std::vector<std::uint8_t> parts{};
  [[nodiscard]] bool any() const {
    return std::any_of(parts.begin(), parts.end(), [](std::uint8_t bits) { return bits != 0; });
  }
  [[nodiscard]] bool has(std::int64_t block, BlockPart part) const {
    if (parts.empty()) return false;
    const auto last = static_cast<std::int64_t>(parts.size()) - 1;
    const std::uint8_t bits = parts[static_cast<std::size_t>(std::clamp<std::int64_t>(block, 0, last))];
    return (bits & static_cast<std::uint8_t>(part)) != 0;
  }
  [[nodiscard]] bool has(BlockPart part) const {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::uint8_t bits) { return (bits & static_cast<std::uint8_t>(part)) != 0; });
  }
  bool operator==(const BlockTreatments&) const = default;
};

}  // namespace ridgeline
