// Texts in which PyTorch tells of its memory: the text of an out-of-memory error in every form since 1.0,
// memory_summary() and memory_stats().
//
// Texts are found among other lines of a log. Forms: c10/cuda/CUDACachingAllocator.cpp (malloc), torch/cuda/memory.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

using OptionalBytes = std::optional<std::int64_t>;

/// One out-of-memory error. What its form does not say is empty.
struct OutOfMemoryText {
  std::uint32_t line = 0;  ///< of the text, from 1
  std::string backend;     ///< "CUDA", "HIP", "XPU", "MPS"
  std::int64_t gpu = -1;
  std::int64_t requested = 0;
  OptionalBytes capacity, free, allocated, unallocated, in_use, other_processes, allowed, private_pools;

  /// Bytes that the caching allocator holds and nobody uses, if it holds `allocated` and `reserved` is said in all.
  [[nodiscard]] OptionalBytes reserved() const;
};

/// Every error of a text, in order; the same error printed again (by a second traceback) once.
std::vector<OutOfMemoryText> out_of_memory_texts(std::string_view text);

/// Sums of the allocator over one process.
struct AllocatorTotals {
  std::int64_t device = -1;
  std::int64_t out_of_memory = 0, retries = 0;  ///< counts
  OptionalBytes allocated, peak_allocated, reserved, peak_reserved, requested, peak_requested, inactive_split;
};

/// Reads the text of memory_summary(), abbreviated or not. Empty where there is none.
std::vector<AllocatorTotals> memory_summaries(std::string_view text);
/// Reads memory_stats() as JSON or as Python prints it, flat or nested. Empty where there is none.
std::optional<AllocatorTotals> memory_stats(std::string_view text);

}  // namespace ridgeline
