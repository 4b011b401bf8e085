#include "sim/workload/parallel/stage_hooks.h"

namespace ridgeline::parallel {

StageHooks stage_hooks(eager::Recorder& recorder, FullyShard* sharded, DistributedDataParallel* replicated) {
  if (sharded != nullptr) {
    sharded->keep_behind_backward();
    return {.before_forward = [sharded] { sharded->begin_forward(false); },
            .after_forward = [sharded] { sharded->after_forward(); },
            .before_backward = [sharded](bool) { sharded->begin_backward(); },
            .after_backward = [sharded](bool) { sharded->after_backward(); },
            .reduce_gradients = [sharded] { sharded->reduce_all(); },
            .gradient_of = [sharded](std::size_t parameter) { return &sharded->gradient_of(parameter); }};
  }
  if (replicated == nullptr) return {};
  return {.before_forward = [&recorder] { recorder.host(HostClass::ddp_forward); },
          .after_forward = {},
          .before_backward =
              [replicated](bool last) {
                if (last) replicated->before_forward(true);
                else replicated->skip();
              },
          .after_backward =
              [replicated](bool last) {
                if (last) replicated->after_backward();
              },
          .reduce_gradients = {}};
}

}  // namespace ridgeline::parallel
