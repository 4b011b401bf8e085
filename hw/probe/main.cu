// ridgeline_probe [--output FILE] [--only NAME]...: measures one GPU with small kernels and writes one JSON file.
//
// The card's settings (clocks, power limit, persistence) are read and never written. Under two minutes.
#include <chrono>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "hw/probe/nvml.h"
#include "hw/probe/probe.h"

namespace {

using nlohmann::ordered_json;

struct Entry {
  const char* name;
  probe::Curves (*run)(const probe::Device&);
};

constexpr Entry kMicrokernels[] = {
    {"launch_period", probe::launch_period},
    {"dram_stream", probe::dram_stream},
    {"read_write_mix", probe::read_write_mix},
    {"l2_bandwidth", probe::l2_bandwidth},
    {"l2_residency", probe::l2_residency},
    {"l1_shared_bandwidth", probe::l1_shared_bandwidth},
    {"latency_chase", probe::latency_chase},
    {"bank_conflicts", probe::bank_conflicts},
    {"wave_staircase", probe::wave_staircase},
    {"occupancy_bandwidth", probe::occupancy_bandwidth},
    {"atomics", probe::atomics},
    {"async_copy", probe::async_copy},
    {"gemm_naive", probe::gemm_naive},
    {"gemm_shared", probe::gemm_shared},
    {"gemm_tensor", probe::gemm_tensor},
    {"host_copies", probe::host_copies},
    {"math_peak", probe::math_peak},
    {"wgmma_peak", probe::wgmma_peak},
    {"sustained_load", probe::sustained_load},
};

double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", x);
  return std::strtod(text, nullptr);
}

ordered_json as_json(const probe::Curve& curve) {
  ordered_json points = ordered_json::array();
  for (const auto& point : curve.points) {
    ordered_json at = ordered_json::object();
    for (const auto& [name, value] : point.at) at[name] = value;
    points.push_back({{"at", at},
                      {"value", rounded(point.value)},
                      {"seconds", rounded(point.seconds)},
                      {"spread", rounded(point.spread)},
                      {"samples", point.samples}});
  }
  return {
      {"name", curve.name}, {"unit", curve.unit}, {"what", curve.what}, {"correct", curve.correct}, {"points", points}};
}

std::string today() {
  char text[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

int usage(int status) {
  std::fprintf(status ? stderr : stdout,
               "usage: ridgeline_probe [--output FILE] [--only MICROKERNEL]...\n"
               "Measures GPU 0 with small kernels and writes one JSON file (default: standard output).\n");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const char* output = nullptr;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--output") && i + 1 < argc) output = argv[++i];
    else if (!std::strcmp(argv[i], "--only") && i + 1 < argc) only.emplace_back(argv[++i]);
    else if (!std::strcmp(argv[i], "--help")) return usage(0);
    else return usage(2);
  }
  for (const auto& name : only) {
    bool known = false;
    for (const auto& entry : kMicrokernels) known = known || name == entry.name;
    if (!known) {
      std::fprintf(stderr, "ridgeline_probe: no microkernel '%s'; there are:", name.c_str());
      for (const auto& entry : kMicrokernels) std::fprintf(stderr, " %s", entry.name);
      std::fprintf(stderr, "\n");
      return 2;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "ridgeline_probe: no CUDA device\n");
    return 1;
  }
  probe::Nvml nvml;
  const double used_before = nvml.used_bytes(), idle_watts = nvml.power_watts();
  std::size_t free_bytes = 0, total_bytes = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));  // creates the context
  const double used_after = nvml.used_bytes();

  probe::Device device;
  CHECK_CUDA(cudaGetDeviceProperties(&device.properties, 0));
  const auto& p = device.properties;
  device.sm_count = p.multiProcessorCount;
  int clock_khz = 0, memory_khz = 0, driver = 0, runtime = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  CHECK_CUDA(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0));
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
  device.clock_hertz = clock_khz * 1e3;

  ordered_json result = {{"format", "ridgeline-probe"}, {"version", 1}, {"date", today()}};
  result["device"] = {{"name", p.name},
                      {"compute_major", p.major},
                      {"compute_minor", p.minor},
                      {"sm_count", p.multiProcessorCount},
                      {"l2_bytes", p.l2CacheSize},
                      {"memory_bytes", p.totalGlobalMem},
                      {"memory_bus_bits", p.memoryBusWidth},
                      {"memory_clock_hertz", memory_khz * 1e3},
                      {"sm_clock_hertz", clock_khz * 1e3},
                      {"shared_per_sm_bytes", p.sharedMemPerMultiprocessor},
                      {"shared_per_block_bytes", p.sharedMemPerBlockOptin},
                      {"registers_per_sm", p.regsPerMultiprocessor},
                      {"warps_per_sm", p.maxThreadsPerMultiProcessor / 32},
                      {"blocks_per_sm", p.maxBlocksPerMultiProcessor},
                      {"power_limit_watts", nvml.power_limit_watts()},
                      {"idle_watts", idle_watts},
                      {"temperature_before", nvml.temperature()}};
  result["software"] = {{"driver_supports_cuda", driver}, {"cuda_runtime", runtime}};
  result["context"] = {{"total_less_free_bytes", total_bytes - free_bytes},
                       {"context_bytes", used_after > used_before ? used_after - used_before : 0.0}};
  ordered_json curves = ordered_json::array();
  bool correct = true;
  for (const auto& entry : kMicrokernels) {
    if (!only.empty() && std::find(only.begin(), only.end(), entry.name) == only.end()) continue;
    const double started = elapsed();
    std::fprintf(stderr, "%-22s", entry.name);
    for (const auto& curve : entry.run(device)) {
      correct = correct && curve.correct;
      curves.push_back(as_json(curve));
    }
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaGetLastError());
    std::fprintf(stderr, "%6.1f s\n", elapsed() - started);
  }
  result["curves"] = curves;
  result["device"]["temperature_after"] = nvml.temperature();
  result["seconds"] = rounded(elapsed());
  const std::string text = result.dump(1) + "\n";
  std::FILE* file = output ? std::fopen(output, "w") : stdout;
  if (!file || std::fwrite(text.data(), 1, text.size(), file) != text.size()) {
    std::fprintf(stderr, "ridgeline_probe: cannot write %s\n", output ? output : "standard output");
    return 1;
  }
  if (output) std::fclose(file);
  return correct ? 0 : 1;
}
