#include "sim/workload/families/key_value_store.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::families {

using eager::Dims;
using eager::Tensor;
namespace aten = eager::aten;

std::pair<Tensor, Tensor> KeyValueStore::update(std::int16_t layer, const Tensor& keys, const Tensor& values) {
  Layer& kept = layers_[static_cast<std::size_t>(layer)];
  if (kind_ == KeyValueCache::fixed) {
    if (!kept.keys.defined()) {
      const Dims sizes{keys.sizes[0], keys.sizes[1], most_tokens_, keys.sizes[3]};
      kept.keys = aten::full(eager_, sizes, keys.type);
      kept.values = aten::full(eager_, sizes, values.type);
    }
    eager_.recorder.host(HostClass::pointwise, 6);
    const Tensor places = aten::add_number(eager_, aten::arange(eager_, keys.sizes[2], DType::int64));
    write(kept.keys, keys);
    write(kept.values, values);
  } else {
    eager_.recorder.host(HostClass::concatenate, 2);
    Tensor all_keys = joined(kept.keys, keys);
    Tensor all_values = joined(kept.values, values);
    replace(kept.keys, std::move(all_keys));
    replace(kept.values, std::move(all_values));
  }
  return {kept.keys, kept.values};
}

Tensor KeyValueStore::joined(const Tensor& old, const Tensor& fresh) {
  Dims sizes = fresh.sizes;
  if (old.defined()) sizes[2] += old.sizes[2];
  Tensor all = eager_.empty(sizes, fresh.type);
  if (!old.defined()) {
    eager_.recorder.op(Copy{CopyKind::permute, fresh.type, all.elements() / sizes[3], sizes[3], 1}, {&fresh}, {&all});
  } else {
    // As many blocks start for the short part as for the long one, which decides.
    // Keys that are a part of a fused projection's rows take the kernel of any strides.
    const std::int64_t rows = sizes[0] * sizes[1];
    const CopyKind kind = fresh.contiguous() ? CopyKind::concatenate : CopyKind::concatenate_strided;
    eager_.recorder.op(Copy{kind, fresh.type, rows, all.elements() / rows, 1}, {&old}, {&all});
  }
  return all;
}

void KeyValueStore::write(Tensor& whole, const Tensor& fresh) {
  eager_.recorder.op(Copy{CopyKind::permute, fresh.type, fresh.elements() / fresh.sizes[3], fresh.sizes[3], 1},
                     {&fresh}, {&whole});
}

void KeyValueStore::reorder() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    eager_.recorder.layer = static_cast<std::int16_t>(i);
    for (Tensor* kept : {&layers_[i].keys, &layers_[i].values}) {
      if (!kept->defined()) continue;
      eager_.recorder.host(HostClass::contiguous);
      Tensor chosen = eager_.empty(kept->sizes, kept->type);
      const std::int64_t row = kept->elements() / kept->sizes[0];
      // index_select: every thread walks up to 16 slices, more are gathered by vectors.
      constexpr std::int64_t kFewSlices = 16;
      if (kept->sizes[0] <= kFewSlices) {
        const Pointwise op{.function = PointwiseFunction::index_few,
                           .rows = kept->sizes[0],
                           .cols = row,
                           .inputs = {kept->type, kept->type, kept->type},
                           .output = kept->type};
        eager_.recorder.op(op, {kept}, {&chosen});
      } else {
        const Tensor beams = eager_.empty({kept->sizes[0]}, DType::int64);
        eager_.recorder.op(Embedding{false, kept->type, kept->sizes[0], kept->sizes[0], row}, {kept, &beams},
                           {&chosen});
      }
      replace(*kept, std::move(chosen));
    }
  }
  eager_.recorder.layer = -1;
}

void KeyValueStore::clear() {
  for (Layer& layer : layers_)
    for (Tensor* kept : {&layer.keys, &layer.values}) replace(*kept, Tensor{});
}

void KeyValueStore::replace(Tensor& old, Tensor fresh) {
  const Phase phase = std::exchange(eager_.recorder.phase, Phase::other);
  old = std::move(fresh);
  eager_.recorder.phase = phase;
}

}  // namespace ridgeline::families
