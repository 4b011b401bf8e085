// A network of two parts that are compiled by themselves: part 0 makes h of x, part 1 the loss of h; backward, part 1
// makes dh, part 0 the gradient of its weight.
#pragma once

#include "tests/support/trace_sketch.h"

namespace ridgeline::testing_support {

struct TwoParts : TraceSketch {
  StorageId w = 0, v = 0, table = 0, x = 0, own = 0, h = 0, again = 0, loss = 0, g = 0, dh = 0, dv = 0, dw = 0;

  static Pointwise each(PointwiseFunction function, std::int64_t elements = 12) {
    return {.function = function, .rows = 1, .cols = elements};
  }

  TwoParts() {
    using F = PointwiseFunction;
    constexpr Matmul kProduct{.m = 3, .n = 4, .k = 4};
    w = allocate(48, Category::weights), v = allocate(56, Category::weights);
    table = allocate(48, Category::gradients);  // of an earlier micro-batch
    x = allocate(64, Category::inputs);
    trace.steps.push_back({here(), 0});
    CompiledRange first, second;
    first.parameters = 1, second.parameters = 2;
    second.enters_forward = first.enters_backward = false;
    phase = Phase::forward;
    first.forward.begin = here();
    own = made(each(F::tanh), {x}, 48);
    h = made(kProduct, {own, w}, 48);
    first.forward.end = here();
    free(v);  // a sharded weight comes anew
    again = allocate(56, Category::weights);
    trace.refills.emplace_back(v, again);
    host(HostClass::fsdp_hooks);
    second.forward.begin = here();
    loss = made(kProduct, {h, again}, 4);
    second.forward.end = here();
    free(again);
    const StorageId anew = allocate(56, Category::weights);
    trace.refills.emplace_back(v, anew);
    phase = Phase::backward;
    host(HostClass::backward_first, 3);
    g = made(each(F::fill, 1), {}, 4, Category::temporaries);
    second.backward.begin = here();
    dh = made(kProduct, {g, anew}, 48, Category::temporaries);
    dv = made(kProduct, {g, h}, 56, Category::gradients);
    host(HostClass::accumulate_grad_add);
    op(each(F::add_in_place), {table, dh}, {table});
    free(h), free(g);
    second.backward.end = here();
    free(anew);
    first.backward.begin = here();
    host(HostClass::mm_backward);
    const StorageId da = made(each(F::tanh_backward), {own, dh}, 48, Category::temporaries);
    dw = made(kProduct, {da, x}, 48, Category::gradients);
    host(HostClass::fan_in_add);
    op(each(F::add_in_place), {table, da}, {table});
    free(da), free(dh), free(own), free(x);
    first.backward.end = here();
    phase = Phase::optimizer;
    op(each(F::add_in_place), {w, dw}, {w});
    free(dw), free(dv), free(loss);
    trace.steps.back().end = here();
    trace.compiled_ranges = {first, second};
  }
};

}  // namespace ridgeline::testing_support
