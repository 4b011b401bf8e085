#include "sim/hierarchy/memo.h"

#include <algorithm>
#include <bit>

namespace ridgeline {
namespace {

/// Two independent sums of everything that is put in; 128 bits of them never meet by chance.
class Digest {
 public:
  void operator()(std::uint64_t value) {
    a_ = (a_ ^ value) * 0x9fb21c651e98df25u;
    a_ ^= a_ >> 32;
    b_ = (b_ + value) * 0xd6e8feb86659fd93u;
    b_ ^= b_ >> 29;
  }
  void operator()(double value) { (*this)(std::bit_cast<std::uint64_t>(value)); }
  void operator()(std::uint32_t high, std::uint32_t low) { (*this)(std::uint64_t{high} << 32 | low); }
  [[nodiscard]] std::array<std::uint64_t, 2> value() const { return {a_, b_}; }

 private:
  std::uint64_t a_ = 0x2545f4914f6cdd1du, b_ = 0x9e3779b97f4a7c15u;
};

}  // namespace

std::vector<std::uint32_t> Memo::names_of(std::span<const PlacedAccess> accesses) {
  std::vector<std::uint32_t> names;
  for (const PlacedAccess& access : accesses)
    if (!access.once && std::find(names.begin(), names.end(), access.run.storage) == names.end())
      names.push_back(access.run.storage);
  return names;
}

Memo::Key Memo::key_of(const KernelLaunch& launch, std::span<const PlacedAccess> accesses,
                       std::span<const std::uint32_t> names, const L2Cache::State& before) {
  Digest digest;
  digest(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&launch)));
  digest(static_cast<std::uint64_t>(launch.work.index()));
  for (const std::int64_t blocks : launch.grid) digest(static_cast<std::uint64_t>(blocks));
  digest(launch.flops);
  for (const PlacedAccess& access : accesses) {
    const auto name = access.once ? names.end() : std::find(names.begin(), names.end(), access.run.storage);
    digest(access.once ? 0u : static_cast<std::uint32_t>(name - names.begin()), access.once ? 1u : 0u);
    digest(access.run.offset);
    digest(access.run.bytes);
    digest(access.requested);
  }
  for (const L2Cache::State::Part& part : before.parts) {
    digest(part.tensor, part.number);
    digest(std::bit_cast<std::uint32_t>(part.bytes), std::bit_cast<std::uint32_t>(part.room));
    digest(part.age);
  }
  for (const std::uint32_t end : before.list_ends) digest(std::uint64_t{end});
  for (const double bytes : before.tensor_bytes) digest(bytes);
  digest(std::uint64_t{before.turn});
  return {digest.value()};
}

bool Memo::worth_it(const KernelLaunch& launch, std::span<const PlacedAccess> accesses, const L2Cache& l2) {
  std::size_t touched = 0;
  for (const PlacedAccess& access : accesses) {
    const double again = access.run.bytes > 0.0 ? access.requested / access.run.bytes : 1.0;
    touched += static_cast<std::size_t>(again * static_cast<double>(L2Cache::parts_of(access.run.bytes)));
  }
  const bool blocks = !std::holds_alternative<MemoryBoundWork>(launch.work);  // run as events besides
  return touched * (blocks ? 4 : 2) > l2.resident_parts();
}

const Memo::Entry* Memo::find(const Key& key) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  ++found_;
  return &at->second;
}

void Memo::keep(const Key& key, Entry entry) {
  if (parts_ + entry.after.parts.size() > kMostParts) {
    entries_.clear();
    parts_ = 0;
  }
  entry.after.parts.shrink_to_fit();
  parts_ += entry.after.parts.size();
  entries_.insert_or_assign(key, std::move(entry));
}

}  // namespace ridgeline
