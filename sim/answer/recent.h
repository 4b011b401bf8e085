// Values that many questions share: those asked for last are kept, each is made once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "sim/units/lazy.h"

namespace ridgeline {

/// At most `most` values, and, where they have a weight, as many as weigh `most_weight` together (one always stays).
/// The one asked for longest ago is dropped first; whoever holds it keeps it. Threads that ask for one value at once
/// wait for the one that makes it. A key is found by comparing it with the others: for few, costly values.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most, std::uint64_t most_weight = UINT64_MAX) : most_(most), most_weight_(most_weight) {}

  /// `probe` compares equal to a Key and makes one; `make` returns a std::shared_ptr<Value>, and may throw: then the
  /// next call tries again. `weigh` tells what a value weighs.
  template <class Probe, class Make, class Weigh>
  std::shared_ptr<Value> get(const Probe& probe, const Make& make, const Weigh& weigh) {
    const std::shared_ptr<Entry> entry = entry_of(probe);
    return entry->value.get([&] {
      std::shared_ptr<Value> value = make();
      const std::lock_guard lock(mutex_);
      entry->weight = weigh(*value);
      drop_oldest();
      return value;
    });
  }
  template <class Probe, class Make>
  std::shared_ptr<Value> get(const Probe& probe, const Make& make) {
    return get(probe, make, [](const Value&) { return std::uint64_t{0}; });
  }
  /// Null where nobody has made it.
  template <class Probe>
  std::shared_ptr<Value> find(const Probe& probe) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->key == probe; });
    const std::shared_ptr<Value>* known = found != entries_.end() ? (*found)->value.known() : nullptr;
    return known != nullptr ? *known : nullptr;
  }

 private:
  struct Entry {
    explicit Entry(Key k) : key(std::move(k)) {}
    Key key;
    Lazy<std::shared_ptr<Value>> value;
    std::uint64_t weight = 0;
  };

  template <class Probe>
  std::shared_ptr<Entry> entry_of(const Probe& probe) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->key == probe; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return entries_.front();
    }
    entries_.push_front(std::make_shared<Entry>(Key(probe)));
    drop_oldest();
    return entries_.front();
  }

  void drop_oldest() {
    std::uint64_t weight = 0;
    std::size_t kept = 0;
    auto entry = entries_.begin();
    for (; entry != entries_.end(); ++entry, ++kept) {
      weight += (*entry)->weight;
      if (kept > 0 && (kept == most_ || weight > most_weight_)) break;
    }
    entries_.erase(entry, entries_.end());
  }

  std::size_t most_;
  std::uint64_t most_weight_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Entry>> entries_;  ///< the one asked for last in front
};

}  // namespace ridgeline
