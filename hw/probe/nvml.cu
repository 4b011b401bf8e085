// Loads libnvidia-ml at run time, so that the program starts without it.
#include "hw/probe/nvml.h"

#include <dlfcn.h>

namespace probe {
namespace {

using Unsigned = int (*)(void*, unsigned*);
using Memory = struct { unsigned long long total, free, used; };

template <class Function>
Function symbol(void* library, const char* name) {
  return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

double asked(void* library, void* device, const char* name) {
  const auto function = symbol<Unsigned>(library, name);
  unsigned value = 0;
  return device && function && function(device, &value) == 0 ? value : 0.0;
}

double asked(void* library, void* device, const char* name, int which) {
  const auto function = symbol<int (*)(void*, int, unsigned*)>(library, name);
  unsigned value = 0;
  return device && function && function(device, which, &value) == 0 ? value : 0.0;
}

}  // namespace

Nvml::Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  const auto init = symbol<int (*)()>(library_, "nvmlInit_v2");
  const auto handle = symbol<int (*)(unsigned, void**)>(library_, "nvmlDeviceGetHandleByIndex_v2");
  if (!init || !handle || init() != 0 || handle(0, &device_) != 0) device_ = nullptr;
}

Nvml::~Nvml() {
  if (library_) dlclose(library_);
}

double Nvml::sm_clock_hertz() const { return 1e6 * asked(library_, device_, "nvmlDeviceGetClockInfo", 1); }
double Nvml::power_watts() const { return 1e-3 * asked(library_, device_, "nvmlDeviceGetPowerUsage"); }
double Nvml::power_limit_watts() const { return 1e-3 * asked(library_, device_, "nvmlDeviceGetEnforcedPowerLimit"); }
double Nvml::temperature() const { return asked(library_, device_, "nvmlDeviceGetTemperature", 0); }

double Nvml::used_bytes() const {
  const auto function = symbol<int (*)(void*, Memory*)>(library_, "nvmlDeviceGetMemoryInfo");
  Memory memory{};
  return device_ && function && function(device_, &memory) == 0 ? double(memory.used) : 0.0;
}

}  // namespace probe
