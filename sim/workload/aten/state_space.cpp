#include "sim/workload/aten/state_space.h"

#include <array>
#include <utility>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/scan_kernels.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

using scan::chunks_of;
using scan::convolved;
using scan::convolved_backward;
using scan::kernel;
using scan::matmuls;

constexpr std::int64_t kScanTokens = 2048;  // a block of selective_scan keeps a state for each (selective_scan.h)
// Instruction slots of a token and state of a channel: medians of six shapes of mamba-ssm 2.3.2 on an NVIDIA H200
// (measurements/h200/scan_kernels.jsonl.gz). Backward, gradients of B and C are added atomically by every channel.
constexpr std::int64_t kScanArithmetic = 35, kScanBackwardArithmetic = 143;

}  // namespace

Tensor with_parameters(Eager& eager, const Tensor& x, std::initializer_list<Tensor> parameters) {
  Tensor result = x;
  std::vector<const Tensor*> values;
  for (const Tensor& one : parameters)
    if (one.defined()) values.push_back(&one);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    const Tensor *a = values[i], *b = i + 1 < values.size() ? values[i + 1] : a,
                 *c = i + 2 < values.size() ? values[i + 2] : a;
    const bool two = i + 1 < values.size(), three = i + 2 < values.size();
    const std::array<Dims, 3> sizes{a->sizes, b->sizes, c->sizes};
    const DType type = a->type;
    const auto backward = [sizes, type](auto& pass) {
      pass.out[0] = pass.in[0];
      for (int j = 1; j < pass.node.edge_count; ++j)
        if (pass.node.needs(j))
          pass.out[static_cast<std::size_t>(j)] = full(pass.eager, sizes[static_cast<std::size_t>(j - 1)], type);
    };
    const Tensor before = result;
    auto* node = three ? node_for<0>(eager, {&before, a, b, c}, HostClass::pointwise_backward, backward)
                 : two ? node_for<0>(eager, {&before, a, b}, HostClass::pointwise_backward, backward)
                       : node_for<0>(eager, {&before, a}, HostClass::pointwise_backward, backward);
    attach(result, node);
  }
  return result;
}

Tensor causal_convolution(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias) {
  eager.recorder.host(HostClass::pointwise, 2);
  const auto backward = [](auto& pass) {
    const Tensor &given = pass.saved[0], &filters = pass.saved[1];
    pass.out[0] = pass.eager.empty_like(given);
    if (pass.node.needs(1)) pass.out[1] = full(pass.eager, filters.sizes, filters.type);
    if (pass.node.edge_count > 2 && pass.node.needs(2))
      pass.out[2] = full(pass.eager, {filters.sizes[0]}, filters.type);
    convolved_backward(pass.eager, given, filters, pass.in[0], pass.out[0]);
  };
  auto* node = bias != nullptr ? node_for<2>(eager, {&x, &weight, bias}, HostClass::pointwise_backward, backward)
                               : node_for<2>(eager, {&x, &weight}, HostClass::pointwise_backward, backward);
  if (node != nullptr) node->saved = {eager.save(x), eager.save(weight)};
  Tensor result = convolved(eager, x, weight, eager.empty_like(x));
  attach(result, node);
  return result;
}

Tensor selective_scan(Eager& eager, const Tensor& u, const Tensor& delta, const Tensor& inputs, const Tensor& z) {
  const std::int64_t batch = u.sizes[0], channels = u.sizes[1], length = u.sizes[2], states = inputs.sizes[1] / 2;
  eager.recorder.host(HostClass::pointwise, 3);
  auto* node = node_for<6>(eager, {&u, &delta, &inputs, &z}, HostClass::pointwise_backward, [states](auto& pass) {
    const auto& [given, steps, both, gate, scanned, kept] = pass.saved;
    for (const auto& [i, like] : {std::pair{0U, &given}, std::pair{1U, &steps}, std::pair{3U, &gate}})
      pass.out[i] = pass.eager.empty(like->sizes, like->type);
    const Tensor wide = full(pass.eager, both.sizes, DType::fp32);
    kernel(pass.eager, "selective_scan_bwd", given.sizes[0] * given.sizes[1], given.sizes[2],
           kScanBackwardArithmetic * states, {&given, &steps, &both, &gate, &scanned, &kept, &pass.in[0]},
           {&pass.out[0], &pass.out[1], &pass.out[3], &wide});
    pass.out[2] = to(pass.eager, wide, both.type);
  });
  Tensor result = eager.empty(z.sizes, z.type);
  const Tensor scanned = eager.empty(u.sizes, u.type),
               kept = eager.empty({batch, channels, chunks_of(length, kScanTokens), 2 * states}, DType::fp32);
  kernel(eager, "selective_scan_fwd", batch * channels, length, kScanArithmetic * states, {&u, &delta, &inputs, &z},
         {&scanned, &result, &kept});
  if (node != nullptr)
    node->saved = {eager.save(u), eager.save(delta),   eager.save(inputs),
                   eager.save(z), eager.save(scanned), eager.save(kept)};
  attach(result, node);
  return result;
}

namespace {

/// The convolution of the first half of xz, which both passes of mamba_inner_fn compute.
Tensor convolved_half(Eager& eager, const Tensor& xz, const Tensor& filters) {
  Tensor x = xz;
  x.sizes[1] /= 2;
  return convolved(eager, x, filters, eager.empty(x.sizes, x.type));
}

}  // namespace

Tensor mamba_inner(Eager& eager, const Tensor& xz, const Mamba1Weights& w, std::int64_t rank, std::int64_t states) {
  const std::int64_t batch = xz.sizes[0], channels = xz.sizes[1] / 2, length = xz.sizes[2], rows = batch * length,
                     hidden = w.output.sizes[0];
  const DType type = xz.type;
  eager.recorder.host(HostClass::pointwise, 9);
  const Tensor &filters = w.convolution, &of_inputs = w.inputs, &of_steps = w.steps, &of_output = w.output;
  const auto product = [type](Eager& at, std::int64_t m, std::int64_t n, std::int64_t k, const Tensor& a,
                              const Tensor& b, const Dims& sizes) {
    Tensor made = at.empty(sizes, type);
    matmuls(at, type, 1, m, n, k, {&a, &b}, made);
    return made;
  };
  auto* node =
      node_for<7>(eager, {&xz, &of_inputs, &of_steps, &of_output}, HostClass::pointwise_backward, [=](auto& pass) {
        Eager& at = pass.eager;
        const auto& [given, filter, small, from_inputs, from_steps, from_output, scanned] = pass.saved;
        const Tensor again = convolved_half(at, given, filter),
                     steps = product(at, channels, rows, rank, from_steps, small, {batch, channels, length});
        pass.out[0] = at.empty(given.sizes, type);
        const Tensor before = product(at, rows, channels, hidden, pass.in[0], from_output, {batch, channels, length}),
                     gated = at.empty({batch, channels, length}, type),
                     by_steps = at.empty({batch, channels, length}, type),
                     by_convolved = at.empty({batch, channels, length}, type),
                     kept = at.empty({batch, channels, chunks_of(length, kScanTokens), 2 * states}, DType::fp32),
                     wide = full(at, {batch, 2 * states, length}, DType::fp32);
        kernel(at, "selective_scan_bwd", batch * channels, length, kScanBackwardArithmetic * states,
               {&again, &steps, &small, &given, &scanned, &kept, &before},
               {&by_convolved, &by_steps, &gated, &wide, &pass.out[0]});
        pass.out[3] = product(at, hidden, channels, rows, pass.in[0], gated, {hidden, channels});
        const Tensor by_small = at.empty(small.sizes, type);
        kernel(at, "copy_of_states", rows, 2 * states, 0, {&wide}, {&by_small});
        pass.out[2] = product(at, channels, rank, rows, by_steps, small, {channels, rank});
        matmuls(at, type, 1, rank, rows, channels, {&from_steps, &by_steps}, by_small);
        pass.out[1] = product(at, rank + 2 * states, channels, rows, by_small, again, {rank + 2 * states, channels});
        matmuls(at, type, 1, channels, rows, rank + 2 * states, {&from_inputs, &by_small}, by_convolved);
        convolved_backward(at, again, filter, by_convolved, pass.out[0]);
      });
  const Tensor scanned = eager.empty({batch, channels, length}, type);
  Tensor small, result;
  {
    const Tensor made = convolved_half(eager, xz, filters);
    small = product(eager, rank + 2 * states, rows, channels, of_inputs, made, {rank + 2 * states, rows});
    const Tensor steps = product(eager, channels, rows, rank, of_steps, small, {batch, channels, length});
    const Tensor apart = eager.empty({batch, 2 * states, length}, type);
    kernel(eager, "copy_of_states", rows, 2 * states, 0, {&small}, {&apart});
    const Tensor gated = eager.empty({batch, channels, length}, type),
                 kept = eager.empty({batch, channels, chunks_of(length, kScanTokens), 2 * states}, DType::fp32);
    kernel(eager, "selective_scan_fwd", batch * channels, length, kScanArithmetic * states,
           {&made, &steps, &apart, &xz}, {&scanned, &gated, &kept});
    result = product(eager, rows, hidden, channels, gated, of_output, {batch, length, hidden});
  }
  if (node != nullptr)
    node->saved = {eager.save(xz),       eager.save(filters),   eager.save(small),  eager.save(of_inputs),
                   eager.save(of_steps), eager.save(of_output), eager.save(scanned)};
  attach(result, node);
  return with_parameters(eager, result, {w.convolution, w.convolution_bias});
}

}  // namespace ridgeline::eager::aten
