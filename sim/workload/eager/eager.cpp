#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {

Tensor Eager::empty(const Dims& sizes, DType type) { return empty(sizes, contiguous_strides(sizes), type); }

Tensor Eager::empty(const Dims& sizes, const Dims& strides, DType type) {
  Tensor result;
  result.sizes = sizes;
  result.strides = strides;
  result.type = type;
  result.storage = StorageReference(recorder, recorder.allocate(result.bytes()));
  return result;
}

SavedTensor Eager::save(const Tensor& tensor) {
  if (promising != nullptr) return SavedTensor(*promising, promising->promised++);
  if (delivering != nullptr) {
    delivering->delivered.push_back(tensor.detached());
    if (delivering->delivered.size() == delivering->promised && !whole_recomputation) throw StopRecomputation{};
  }
  return SavedTensor(tensor.detached());
}

}  // namespace ridgeline::eager
