// The host's work in a recorded step that its calls' own classes do not cover, step after step.
#include "sim/trace/profiler/dispatcher_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Dispatcher {
  DispatcherHost host;

  /// Classes and counts of what stands before a call: "class times".
  std::vector<std::pair<HostClass, std::int64_t>> before(const std::string& name, Phase phase,
                                                         std::size_t tensors = 0) {
    AtenCall call;
    call.name = name;
    call.phase = phase;
    if (tensors > 0) call.inputs.emplace_back(TensorList(tensors));
    std::vector<std::pair<HostClass, std::int64_t>> work;
    for (const DispatcherHost::Work& one : host.before(call)) work.emplace_back(one.host_class, one.times);
    return work;
  }
};

using Work = std::pair<HostClass, std::int64_t>;

TEST(DispatcherHost, enters_each_backward_pass_and_starts_its_engine_in_the_first_of_a_step) {
  Dispatcher d;
  for (int step = 0; step < 2; ++step) {  // the second as the first
    d.host.begin_step();
    for (int i = 0; i < 3; ++i) EXPECT_THAT(d.before("aten::mm", Phase::forward), IsEmpty());
    EXPECT_THAT(d.before("aten::mm", Phase::backward),
                ElementsAre(Work{HostClass::backward_call, 1}, Work{HostClass::backward_first, 3}));
    EXPECT_THAT(d.before("aten::mm", Phase::backward), IsEmpty());
    EXPECT_THAT(d.before("aten::mm", Phase::forward), IsEmpty());  // another micro-batch
    EXPECT_THAT(d.before("aten::mm", Phase::backward), ElementsAre(Work{HostClass::backward_call, 1}));
  }
}

TEST(DispatcherHost, a_step_that_ends_in_its_backward_pass_leaves_the_next_ones_whole) {
  Dispatcher d;
  d.host.begin_step();
  d.before("aten::mm", Phase::forward);
  d.before("aten::mm", Phase::backward);
  d.host.begin_step();
  // Nothing ran forward in it: the pass is entered all the same.
  EXPECT_THAT(d.before("aten::mm", Phase::backward),
              ElementsAre(Work{HostClass::backward_call, 1}, Work{HostClass::backward_first, 0}));
}

TEST(DispatcherHost, clips_once_and_updates_once_a_step_with_the_tensors_of_the_list) {
  const auto optimizer_of = [](const std::string& name, const std::string& optimizer) {
    Dispatcher d;
    d.host.optimizer = optimizer;
    d.host.begin_step();
    const auto work = d.before(name, Phase::optimizer, 7);
    EXPECT_THAT(d.before(name, Phase::optimizer, 7), IsEmpty()) << "the second list of the same step";
    EXPECT_EQ(d.host.end_step().host_class, HostClass::per_parameter_zero_grad);
    EXPECT_EQ(d.host.end_step().times, 7);
    return work;
  };
  EXPECT_THAT(optimizer_of("aten::_foreach_addcdiv_", "AdamW"),
              ElementsAre(Work{HostClass::accumulate_grad, 7}, Work{HostClass::foreach_fixed, 1},
                          Work{HostClass::per_parameter_foreach, 7}));
  EXPECT_THAT(optimizer_of("aten::_foreach_add_", "SGD"),
              ElementsAre(Work{HostClass::accumulate_grad, 7}, Work{HostClass::foreach_fixed, 1},
                          Work{HostClass::per_parameter_foreach_sgd, 7}));
  EXPECT_THAT(optimizer_of("aten::_fused_adamw_", "AdamW"),
              ElementsAre(Work{HostClass::accumulate_grad, 7}, Work{HostClass::fused_fixed, 1},
                          Work{HostClass::per_parameter_fused, 7}));
  Dispatcher d;
  d.host.begin_step();
  EXPECT_THAT(d.before("aten::_foreach_norm", Phase::clipping, 5),
              ElementsAre(Work{HostClass::clip_fixed, 1}, Work{HostClass::per_parameter_clip, 5}));
  EXPECT_THAT(d.before("aten::_foreach_mul_", Phase::clipping, 5), IsEmpty());
  EXPECT_THAT(d.before("aten::stack", Phase::clipping, 5), IsEmpty()) << "no operation over lists of parameters";
}

TEST(DispatcherHost, views_cost_what_their_kind_costs_and_nothing_inside_other_calls) {
  const auto view = [](const std::string& name, Phase phase) {
    AtenCall call;
    call.name = name;
    call.phase = phase;
    const DispatcherHost::Work work = DispatcherHost().of_view(call);
    return Work{work.host_class, work.times};
  };
  EXPECT_EQ(view("aten::view", Phase::forward), (Work{HostClass::view, 1}));
  EXPECT_EQ(view("aten::transpose", Phase::forward), (Work{HostClass::transpose, 1}));
  EXPECT_EQ(view("aten::permute", Phase::forward), (Work{HostClass::transpose, 1}));
  EXPECT_EQ(view("aten::split_with_sizes", Phase::forward), (Work{HostClass::split, 1}));
  EXPECT_EQ(view("aten::view", Phase::backward), (Work{HostClass::view_backward, 1}));
  for (const Phase phase : {Phase::clipping, Phase::optimizer}) EXPECT_EQ(view("aten::view", phase).second, 0);
  for (const char* inside : {"aten::t", "aten::detach", "aten::empty", "aten::empty_like"})
    for (const Phase phase : {Phase::forward, Phase::backward}) EXPECT_EQ(view(inside, phase).second, 0) << inside;
}

}  // namespace
}  // namespace ridgeline::trace
