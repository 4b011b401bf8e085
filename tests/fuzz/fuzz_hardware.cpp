// GPUs, hosts and software stacks: files of their own, and shipped ones with changed keys.
#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/units/user_error.h"
#include "sim/workload/host_class.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

std::string wrong_gpu(const Gpu& gpu) {
  if (gpu.sm.count <= 0) return "a GPU without SMs";
  if (!(gpu.dram.bandwidth.value() > 0) || !std::isfinite(gpu.dram.bandwidth.value()))
    return "a DRAM without bandwidth";
  return {};
}

}  // namespace

std::string fuzz_hardware(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> gpus = hardware_names(), hosts = host_names(), software = software_names();
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const DescribedChange change = described_change(text);
    constexpr std::string_view kHosts = "hosts/", kSoftware = "software/";
    if (change.name.empty()) return wrong_gpu(gpu_from_yaml(text, "input"));
    if (change.name.starts_with(kHosts)) {
      (void)load_host(hosts[entry_of(change.name.substr(kHosts.size()), hosts)], host_class_names(), change.changes);
    } else if (change.name.starts_with(kSoftware)) {
      (void)load_software(software[entry_of(change.name.substr(kSoftware.size()), software)], change.changes);
    } else {
      return wrong_gpu(load_gpu(gpus[entry_of(change.name, gpus)], change.changes,
                                size % 2 == 0 ? Numbers::measured : Numbers::datasheet));
    }
  } catch (const UserError&) {  // says where, as tests of the readers state
  }
  return {};
}

}  // namespace ridgeline
