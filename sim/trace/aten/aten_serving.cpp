// Kernels that serving libraries bring along (vLLM's _C and _C_cache_ops, SGLang's sgl_kernel): results come first
// among the arguments, and each call is one kernel with a block a row (token).
#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

/// Instructions an element beyond loading, converting and storing.
constexpr std::int64_t kOfNorm = 6, kOfActivation = 12, kOfRotation = 8, kOfScaling = 3;

MappedOps one_kernel(const char* name, std::int64_t arithmetic, const AtenTensor& over, std::vector<AtenTensor> inputs,
                     std::vector<AtenTensor> outputs) {
  if (over.elements() < 1) return nothing();
  FusedKernel op;
  op.name = name;
  op.shape = FusedKernel::Shape::rows;
  op.cols = over.last();
  op.rows = over.elements() / over.last();
  op.type = over.type;
  op.arithmetic = arithmetic;
  for (const AtenTensor& input : inputs) op.reads.push_back(input.bytes());
  for (const AtenTensor& output : outputs) op.writes.push_back(output.bytes());
  return one({op, std::move(inputs), std::move(outputs), HostClass::pointwise, HostClass::pointwise});
}

/// (result, x, weight, epsilon).
MappedOps served_rms_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor *y = call.tensor(0), *x = call.tensor(1), *weight = call.tensor(2);
  if (y == nullptr || x == nullptr || weight == nullptr) return std::nullopt;
  return one_kernel("rms_norm", kOfNorm, *x, {*x, *weight}, {*y});
}
/// (x, residual, weight, epsilon): both are changed, the residual to their sum.
MappedOps served_add_rms_norm(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *residual = call.tensor(1), *weight = call.tensor(2);
  if (x == nullptr || residual == nullptr || weight == nullptr) return std::nullopt;
  return one_kernel("add_rms_norm", kOfNorm, *x, {*x, *residual, *weight}, {*x, *residual});
}
/// (result, x): one half of each row of x, activated, times the other.
MappedOps activated_product(const AtenCall& call, const MapContext&) {
  const AtenTensor *y = call.tensor(0), *x = call.tensor(1);
  if (y == nullptr || x == nullptr || x->elements() != 2 * y->elements()) return std::nullopt;
  return one_kernel("activation_mul", kOfActivation, *y, {*x}, {*y});
}
/// (positions, queries, keys or none, size of a head, table of sines and cosines, …), in place.
MappedOps served_rotation(const AtenCall& call, const MapContext&) {
  const AtenTensor *positions = call.tensor(0), *query = call.tensor(1), *key = call.tensor(2), *table = call.tensor(4);
  if (positions == nullptr || query == nullptr || table == nullptr) return std::nullopt;
  std::vector<AtenTensor> rotated{*query};
  AtenTensor over = *query;
  over.sizes = {positions->elements(), query->elements() / std::max<std::int64_t>(1, positions->elements())};
  over.strides.clear();
  if (key != nullptr) {
    rotated.push_back(*key);
    over.sizes[1] += key->elements() / std::max<std::int64_t>(1, positions->elements());
  }
  std::vector<AtenTensor> inputs = rotated;
  inputs.push_back(fresh(table->type, {positions->elements(), table->last()}));
  return one_kernel("rotary_embedding", kOfRotation, over, std::move(inputs), std::move(rotated));
}
/// (result, x, scale).
MappedOps scaled_to_fp8(const AtenCall& call, const MapContext&) {
  const AtenTensor *y = call.tensor(0), *x = call.tensor(1);
  if (y == nullptr || x == nullptr || y->elements() != x->elements()) return std::nullopt;
  return one_kernel("fp8_quant", kOfScaling, *x, {*x}, {*y});
}
/// (keys, values, cache of keys, cache of values, slots, …): rows go to where the slots say.
MappedOps into_cache(const AtenCall& call, const MapContext&) {
  const AtenTensor *key = call.tensor(0), *value = call.tensor(1), *cache = call.tensor(2);
  if (key == nullptr || value == nullptr || cache == nullptr) return std::nullopt;
  AtenTensor over = *key;
  over.sizes = {key->sizes.empty() ? 1 : key->sizes.front(), 0};
  over.sizes[1] = (key->elements() + value->elements()) / std::max<std::int64_t>(1, over.sizes[0]);
  over.strides.clear();
  return one_kernel("reshape_and_cache", kOfScaling, over, {*key, *value},
                    {fresh(cache->type, key->sizes), fresh(cache->type, value->sizes)});
}

}  // namespace

void add_serving_rules(RuleTable& table) {
  add(table, "_C::rms_norm sgl_kernel::rmsnorm", served_rms_norm);
  add(table, "_C::fused_add_rms_norm sgl_kernel::fused_add_rmsnorm", served_add_rms_norm);
  add(table,
      "_C::silu_and_mul _C::mul_and_silu _C::gelu_and_mul _C::gelu_tanh_and_mul "
      "sgl_kernel::silu_and_mul sgl_kernel::gelu_and_mul sgl_kernel::gelu_tanh_and_mul",
      activated_product);
  add(table, "_C::rotary_embedding", served_rotation);
  add(table, "_C::static_scaled_fp8_quant", scaled_to_fp8);
  add(table, "_C_cache_ops::reshape_and_cache _C_cache_ops::reshape_and_cache_flash", into_cache);
}

}  // namespace ridgeline::trace
