// How a flat buffer of all parameters is cut over ranks (ZeRO stages 1 and 2), and whose share a gradient lies in.
#pragma once

#include <cstdint>
#include <vector>

namespace ridgeline::deepspeed {

/// A stretch of a tensor that lies in one rank's share.
struct Slice {
  std::int64_t rank = 0, elements = 0;
  bool operator==(const Slice&) const = default;
};

/// Tensors one behind the other, padded to a multiple of twice the ranks, in shares of equal size.
class Partition {
 public:
  Partition(const std::vector<std::int64_t>& elements, std::int64_t ranks);

  [[nodiscard]] std::int64_t elements() const { return share_ * ranks_; }
  [[nodiscard]] std::int64_t share() const { return share_; }
  /// Of one tensor, in order.
  [[nodiscard]] std::vector<Slice> slices(std::size_t tensor) const;
  /// Elements of a tensor in one rank's share.
  [[nodiscard]] std::int64_t part(std::size_t tensor, std::int64_t rank) const;
  /// Elements of the tensors whose gradients a rank keeps: all of each that its share has a part of.
  [[nodiscard]] std::int64_t kept(std::int64_t rank) const;
  /// The first of those that keep most.
  [[nodiscard]] std::int64_t fullest_rank() const;

 private:
  std::vector<std::int64_t> ends_;  ///< of each tensor in the buffer
  std::int64_t ranks_, share_;
};

}  // namespace ridgeline::deepspeed
