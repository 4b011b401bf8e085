// Hand-made step programs: a GPU and a host with round numbers, kernels of given duration.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/hardware/host.h"
#include "sim/program/step_program.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline::testing_support {

/// 100 SMs, gap 1 us, start latency 2 us, queue of 8, 100 W idle, 500 W limit.
inline Gpu round_gpu() {
  Gpu gpu;
  gpu.name = "round";
  gpu.sm.count = 100;
  gpu.launch.gap = microseconds(1);
  gpu.launch.start_latency = microseconds(2);
  gpu.launch.kernel_fixed = microseconds(1);
  gpu.launch.graph_period = microseconds(1.25);
  gpu.launch.graph_gap = microseconds(0.25);
  gpu.launch.queue_depth = 8;
  gpu.power.idle = Watts(100);
  gpu.power.limit = Watts(500);
  gpu.power.tensor_bf16 = gpu.power.tensor_fp16 = gpu.power.tensor_tf32 = JoulesPerFlop(1e-12);
  gpu.power.fp32 = JoulesPerFlop(1e-11);
  gpu.power.dram = JoulesPerByte(1e-10);
  gpu.clock.lowest = Hertz(0.2e9);
  gpu.clock.knee = Hertz(0.5e9);
  gpu.clock.boost = gpu.clock.boost_tensor = gpu.clock.sustained = gpu.clock.tensor = Hertz(1e9);
  gpu.clock.knee_voltage = 0.7;
  gpu.l2.capacity = Bytes(32 * kMiB);
  return gpu;
}

/// Launch call 1 us; linear 10 us, pointwise 5 us, python_fixed 1 us.
inline Host round_host() {
  Host host;
  host.launch_call = microseconds(1);
  host.graph_launch = microseconds(8);
  host.class_costs.resize(static_cast<std::size_t>(HostClass::other) + 1);
  host.class_costs[static_cast<std::size_t>(HostClass::linear)] = microseconds(10);
  host.class_costs[static_cast<std::size_t>(HostClass::pointwise)] = microseconds(5);
  host.class_costs[static_cast<std::size_t>(HostClass::python_fixed)] = microseconds(1);
  return host;
}

class ProgramBuilder {
 public:
  ProgramBuilder& begin_step() {
    program_.steps.push_back({here(), here()});
    times_.clear();
    return *this;
  }
  ProgramBuilder& end_step() {
    program_.steps.back().end = here();
    return *this;
  }
  ProgramBuilder& host(HostClass host_class, std::uint32_t times = 1) {
    return push({Action::Kind::host, host_class, 0, times});
  }
  ProgramBuilder& wait() { return push({Action::Kind::wait}); }
  /// A kernel of `us` microseconds, on the tensor cores when it has `tensor_flops`.
  ProgramBuilder& kernel(double us, double tensor_flops = 0.0, bool without_gap = false, std::int64_t blocks = 100) {
    KernelLaunch launch;
    launch.name = "k" + std::to_string(program_.launches.size());
    launch.grid = {blocks, 1, 1};
    launch.flops = tensor_flops;
    launch.pipe = tensor_flops > 0 ? Pipe::tensor_mma : Pipe::none;
    launch.type = DType::bf16;
    launch.work = MemoryBoundWork{};
    launch.follows_without_gap = without_gap;
    push({Action::Kind::launch, HostClass::other, 0, static_cast<std::uint32_t>(program_.launches.size())});
    program_.launches.push_back(launch);
    KernelTime time;
    time.time = microseconds(us);
    times_.push_back(time);
    return *this;
  }
  /// Makes the last kernel one of other work.
  ProgramBuilder& of(decltype(KernelLaunch::work) work) {
    const std::size_t last = program_.launches.size() - 1;
    KernelLaunch launch = program_.launches[last];
    launch.work = std::move(work);
    program_.launches.replace(last, std::move(launch));
    return *this;
  }
  /// Makes the last kernel one of a collective's.
  ProgramBuilder& communicates() {
    const std::size_t last = program_.launches.size() - 1;
    KernelLaunch launch = program_.launches[last];
    launch.time_class = TimeClass::communication;
    program_.launches.replace(last, std::move(launch));
    return *this;
  }
  /// Returns the storage.
  std::uint32_t allocate(std::int64_t bytes, Category category = Category::activations) {
    const auto storage = static_cast<std::uint32_t>(program_.storages.size());
    program_.storages.push_back({bytes, category, -1});
    push({Action::Kind::allocate, HostClass::other, 0, storage});
    return storage;
  }
  ProgramBuilder& free(std::uint32_t storage) { return push({Action::Kind::free, HostClass::other, 0, storage}); }

  [[nodiscard]] const StepProgram& program() const { return program_; }
  /// Of the launches of the last step.
  [[nodiscard]] const std::vector<KernelTime>& times() const { return times_; }

 private:
  ProgramBuilder& push(const Action& action) {
    program_.actions.push_back(action);
    return *this;
  }
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(program_.actions.size()); }

  StepProgram program_;
  std::vector<KernelTime> times_;
};

}  // namespace ridgeline::testing_support
