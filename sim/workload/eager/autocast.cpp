#include "sim/workload/eager/autocast.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {

Tensor Autocast::lowered(Eager& eager, const Tensor& tensor) {
  if (!type_ || tensor.type == *type_) return tensor;
  const bool cacheable = tensor.leaf && tensor.requires_gradient();
  if (!cacheable) return aten::to(eager, tensor, *type_);
  const auto [entry, fresh] = cached_.try_emplace(tensor.node, static_cast<std::uint32_t>(cache_.size()));
  if (fresh) cache_.push_back(aten::to(eager, tensor, *type_));
  return cache_[entry->second];
}

void Autocast::leave() {
  for (Tensor& cast : cache_) cast = Tensor{};
  cache_.clear();
  cached_.clear();
  type_.reset();
}

}  // namespace ridgeline::eager
