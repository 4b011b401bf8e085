#include "sim/study/kernel_sensitivity.h"

#include "sim/hierarchy/make_engine.h"

namespace ridgeline {

Sensitivity kernel_sensitivity(const KernelCase& kernel, const Gpu& gpu, const Software& software,
                               std::string_view engine, double factor) {
  const KernelPrediction base = predict_kernel(kernel, gpu, software, *make_engine(engine, gpu));
  Sensitivity result{base.time, {}, gpu.sm.count, 0, {}, {}};
  const auto time_on = [&](const Gpu& changed) {
    return predict_kernel(kernel, changed, software, *make_engine(engine, changed)).time;
  };
  for (const Resource resource : kResources) {
    if (resource == Resource::host_speed) continue;
    const Gpu changed = with_more(gpu, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.sm.count;
    result.note(resource, time_on(changed));
  }
  for (const HardwareKey& key : hardware_keys())
    if (key.is_number() && key.get(gpu) != 0.0)
      result.keys.push_back({&key, base.time - time_on(with_more(gpu, key, factor))});
  return result;
}

}  // namespace ridgeline
