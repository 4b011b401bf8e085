// Values by operation, found by a hash that is known already: hashing a list of hundreds of tensors takes longer than
// finding what it stands for.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

#include "sim/workload/op.h"

namespace ridgeline {

template <class Value>
class OpMap {
 public:
  /// Null where there is none.
  [[nodiscard]] const Value* find(const Op& op, std::size_t hash) const {
    const auto found = values_.find(Probe{op, hash});
    return found != values_.end() ? &found->second : nullptr;
  }
  /// The value of `op`, which `make` gives where there is none.
  template <class Make>
  const Value& get(const Op& op, std::size_t hash, const Make& make) {
    if (const Value* known = find(op, hash)) return *known;
    return values_.emplace(Key{op, hash}, make()).first->second;
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  void clear() { values_.clear(); }

 private:
  struct Key {
    Op op;
    std::size_t hash;
  };
  struct Probe {
    const Op& op;
    std::size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const { return key.hash; }
    std::size_t operator()(const Probe& probe) const { return probe.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return a.hash == b.hash && a.op == b.op; }
    bool operator()(const Probe& a, const Key& b) const { return a.hash == b.hash && a.op == b.op; }
    bool operator()(const Key& a, const Probe& b) const { return a.hash == b.hash && a.op == b.op; }
  };
  std::unordered_map<Key, Value, Hash, Equal> values_;
};

}  // namespace ridgeline
