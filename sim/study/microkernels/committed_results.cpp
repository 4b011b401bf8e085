#include "sim/study/microkernels/committed_results.h"

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

constexpr const char *kH200 = "nvidia-h200-sxm-141gb", *kH100 = "nvidia-h100-sxm5-80gb";

ProbeResult result(const std::filesystem::path& folder, const std::string& name) {
  return load_probe_result((folder / (name + ".json")).string());
}

}  // namespace

CommittedResults::CommittedResults(const std::filesystem::path& results)
    : h200(load_gpu(kH200)),
      h100(load_gpu(kH100)),
      first(result(results, kH200)),
      second(result(results, std::string(kH200) + "-second")),
      third(result(results, std::string(kH200) + "-third")),
      other(result(results, kH100)),
      other_again(result(results, std::string(kH100) + "-again")) {}

std::vector<MicrokernelEvidence> CommittedResults::evidence() const {
  return {{&h200, &second, &third, &first}, {&h100, &other, &other_again, nullptr}};
}

}  // namespace ridgeline
