// Lines of kernel-case files, answered as `ridgeline kernels` does: a mistake is told in the answer.
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/report/kernel_lines.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_kernel_case(const std::uint8_t* data, std::size_t size) {
  static const KernelLines chips[]{
      {load_gpu("nvidia-h200-sxm-141gb"), load_software("pytorch-2.11"), "analytic", KernelLineOptions{}},
      {load_gpu("nvidia-t4"), load_software("pytorch-1.13"), "analytic", KernelLineOptions{}}};
  const KernelLines::Answer answer = chips[size % 2].answer({reinterpret_cast<const char*>(data), size});
  const nlohmann::json line = nlohmann::json::parse(answer.text, nullptr, false);
  if (!line.is_object()) return "an answer that is no object: " + answer.text;
  if (answer.mistake) return {};
  const nlohmann::json& time = line["predicted"]["time_us"];
  if (!time.is_number() || !std::isfinite(time.get<double>()) || time.get<double>() < 0)
    return "a time that cannot be: " + answer.text;
  return {};
}

}  // namespace ridgeline
