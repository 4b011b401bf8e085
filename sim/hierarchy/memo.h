// Kernels that were simulated before on an L2 in the same state: layers of a model repeat each other.
//
// The key is the launch, where its accesses lie in the named tensors, and the whole state of the L2 up to the names of
// storages; its value the kernel's time and profile and the L2's state after it. What comes out is to the bit what a
// simulation would give (tests/hierarchy/memo_test.cpp).
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/hierarchy/access_place.h"
#include "sim/hierarchy/l2_cache.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

class Memo {
 public:
  struct Entry {
    KernelTime time;
    L2Cache::State after;
  };
  struct Key {
    std::array<std::uint64_t, 2> digest{};
    bool operator==(const Key&) const = default;
  };

  /// The storages of `accesses`, each once, in order.
  static std::vector<std::uint32_t> names_of(std::span<const PlacedAccess> accesses);
  /// `launch` must keep its address and its meaning as long as the memo lives.
  static Key key_of(const KernelLaunch& launch, std::span<const PlacedAccess> accesses,
                    std::span<const std::uint32_t> names, const L2Cache::State& before);
  /// Whether a simulation would take longer than to write down and compare the L2's state.
  static bool worth_it(const KernelLaunch& launch, std::span<const PlacedAccess> accesses, const L2Cache& l2);

  [[nodiscard]] const Entry* find(const Key& key) const;
  void keep(const Key& key, Entry entry);
  [[nodiscard]] std::size_t found() const { return found_; }

 private:
  static constexpr std::size_t kMostParts = 4u << 20;  ///< kept in all: 100 MB
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.digest[0]; }
  };
  std::unordered_map<Key, Entry, Hash> entries_;
  std::size_t parts_ = 0;
  mutable std::size_t found_ = 0;
};

}  // namespace ridgeline
