// The few questions asked of NVIDIA's management library, which is loaded if the driver brings it. Nothing is ever set.
#pragma once

namespace probe {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  [[nodiscard]] bool there() const { return device_ != nullptr; }
  [[nodiscard]] double sm_clock_hertz() const;  ///< 0 where the library does not say
  [[nodiscard]] double power_watts() const;     ///< 0 likewise
  [[nodiscard]] double power_limit_watts() const;
  [[nodiscard]] double used_bytes() const;   ///< of the device's memory, all processes
  [[nodiscard]] double temperature() const;  ///< degrees Celsius

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace probe
