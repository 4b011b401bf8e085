// What launches find in the L2, by what they touch: a stretch of launches from one after which nothing older is left to
// the next of that kind finds the same wherever it comes again, in the next block of the network, in the next step that
// is asked about.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ridgeline {

/// Of the launches of a stretch, in order: shares that hit of all accesses, to 1/32.
struct StretchResidency {
  std::vector<std::uint64_t> packed;  ///< of each launch: equal for equal shares
  std::vector<std::uint32_t> begin;   ///< of each launch in `shares`, and their end
  std::vector<double> shares;
};

/// Those found on one L2. Safe to share between threads.
class KnownStretches {
 public:
  /// Beyond `most` stretches all are forgotten.
  explicit KnownStretches(std::size_t most = 1 << 15) : most_(most) {}

  /// Null where it is not known.
  std::shared_ptr<const StretchResidency> find(std::uint64_t key) const {
    const std::shared_lock lock(mutex_);
    const auto found = stretches_.find(key);
    return found != stretches_.end() ? found->second : nullptr;
  }
  void keep(std::uint64_t key, std::shared_ptr<const StretchResidency> stretch) {
    const std::unique_lock lock(mutex_);
    if (stretches_.size() >= most_) stretches_.clear();
    stretches_.try_emplace(key, std::move(stretch));
  }

 private:
  std::size_t most_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const StretchResidency>> stretches_;
};

}  // namespace ridgeline
