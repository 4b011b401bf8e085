// Memory of a micro-batch that is compiled in parts: which part ends a storage that several of them touch.
//
// Records of an eager trace free a storage where its last eager reference went, which may lie in another part than any
// of its uses (the cache of autocast's casts). Compiled, it goes with the last part that uses it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

struct PartStorage {
  std::uint32_t ends_in = kNone;   ///< compiled range that frees it; kNone: the script does
  bool shared = false;             ///< used outside of the range that it is made in
  std::uint32_t freed_at = kNone;  ///< record outside of all ranges
};

class PartStorages {
 public:
  /// Empty unless a range of `trace` is a part.
  explicit PartStorages(const OpTrace& trace);

  [[nodiscard]] bool empty() const { return storages_.empty(); }
  [[nodiscard]] bool shared(StorageId storage) const;
  [[nodiscard]] std::uint32_t ends_in(StorageId storage) const;
  /// The backward graph of this part reads it last, though no eager operation of the part does.
  void end_in(StorageId storage, std::uint32_t part) { storages_[storage].ends_in = part; }
  /// The script gives its memory back before this record.
  [[nodiscard]] bool gone_before(StorageId storage, std::uint32_t record) const;
  /// Where the same tensor lies after its memory was given back and taken anew; kNone: that did not happen.
  [[nodiscard]] StorageId refilled(StorageId storage) const;

 private:
  std::unordered_map<StorageId, PartStorage> storages_;
  std::unordered_map<StorageId, StorageId> refilled_;
};

}  // namespace ridgeline::compile
