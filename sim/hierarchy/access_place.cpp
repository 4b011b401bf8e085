#include "sim/hierarchy/access_place.h"

#include <algorithm>

namespace ridgeline {

std::vector<PlacedAccess> AccessPlaces::of(const KernelLaunch& launch, std::span<const Operand> operands) {
  std::vector<PlacedAccess> places;
  places.reserve(launch.reads.size() + launch.writes.size());
  for (const auto* accesses : {&launch.reads, &launch.writes}) {
    for (const Access& access : *accesses) {
      PlacedAccess place;
      place.run.bytes = access.bytes;
      place.requested = std::max(access.bytes, access.requested);
      const auto index = static_cast<std::size_t>(access.operand);
      if (access.operand == Access::kTemporary) {
        const auto next = static_cast<std::uint32_t>(temporaries_.size() % kTemporaries);
        place.run.storage = temporaries_.try_emplace(static_cast<std::int64_t>(access.bytes), next).first->second;
      } else if (access.operand < 0 || index >= operands.size()) {
        place.once = true;
      } else {
        place.run.storage = kTemporaries + operands[index].storage;
        // Inputs of one storage are views of it, side by side (queries, keys, values); an output is the input it
        // overwrites.
        if (accesses == &launch.reads)
          for (std::size_t i = 0; i < index; ++i)
            if (operands[i].storage == operands[index].storage)
              place.run.offset += static_cast<double>(operands[i].bytes);
      }
      places.push_back(place);
    }
  }
  return places;
}

}  // namespace ridgeline
