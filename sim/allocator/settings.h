// What can be set about PyTorch's caching allocator, and its rules of size that need no state.
//
// Defaults are those of PyTorch 2.11 (PYTORCH_ALLOC_CONF unset). Tested by tests/allocator/settings_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace ridgeline {

struct AllocatorSettings {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  bool expandable_segments = false;
  std::int64_t max_split_size = kUnlimited;        ///< blocks of at least this many bytes are never split
  std::int64_t max_non_split_rounding = 20 << 20;  ///< most bytes a request may waste in such a block
  std::int64_t large_segment_size = 20 << 20;      ///< segment of a request between 1 and 10 MiB
  double garbage_collection_threshold = 0.0;       ///< of the memory fraction; 0 = never; needs a fraction
  double memory_fraction = 0.0;                    ///< share of the device the process may reserve; 0 = no limit
  /// Divisions between powers of two that sizes round up to, for sizes of 1 MiB · 2^i (the last entry: 32 GiB and
  /// more).
  std::array<int, 16> roundup_power2_divisions{};

  /// From the text of PYTORCH_ALLOC_CONF, e.g. "expandable_segments:True,max_split_size_mb:128". Keys that do not
  /// change where blocks go (pinned_*, backend, release_lock_on_cudamalloc …) are accepted. Throws
  /// std::invalid_argument with the key and, for an unknown one, the nearest known.
  static AllocatorSettings parse(std::string_view text);

  bool operator==(const AllocatorSettings&) const = default;
};

inline constexpr std::int64_t kMinBlock = 512;          ///< every block is a multiple of it
inline constexpr std::int64_t kLargestSmall = 1 << 20;  ///< requests up to here live in the small pool
inline constexpr std::int64_t kSmallSegment = 2 << 20;  ///< segment of the small pool
inline constexpr std::int64_t kOwnSegment = 10 << 20;   ///< requests from here on get a segment of their own size …
inline constexpr std::int64_t kSegmentRounding = 2 << 20;  ///< … rounded up to this

/// Bytes of the block a request of `bytes` > 0 gets.
std::int64_t rounded_request(std::int64_t bytes, const AllocatorSettings& settings);
/// Bytes asked of the device when no cached block serves a rounded request.
std::int64_t segment_size(std::int64_t rounded, const AllocatorSettings& settings);

}  // namespace ridgeline
