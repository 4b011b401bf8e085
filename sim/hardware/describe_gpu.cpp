#include "sim/hardware/describe_gpu.h"

#include "sim/hardware/describe_gemm_menu.h"

#include <fmt/format.h>

#include <array>

namespace ridgeline {
namespace {

using config::Range;

constexpr std::array<std::pair<std::string_view, Architecture>, 5> kArchitectures{{{"volta", Architecture::volta},
                                                                                   {"turing", Architecture::turing},
                                                                                   {"ampere", Architecture::ampere},
                                                                                   {"ada", Architecture::ada},
                                                                                   {"hopper", Architecture::hopper}}};
constexpr std::array<std::pair<std::string_view, L2Replacement>, 4> kReplacements{{{"aged", L2Replacement::aged},
                                                                                   {"lru", L2Replacement::lru},
                                                                                   {"random", L2Replacement::random},
                                                                                   {"none", L2Replacement::none}}};
constexpr std::array<std::pair<std::string_view, L2Writes>, 2> kWrites{
    {{"back", L2Writes::back}, {"through", L2Writes::through}}};
constexpr std::array<std::pair<std::string_view, TileOrder>, 4> kTileOrders{{{"automatic", TileOrder::automatic},
                                                                             {"rows", TileOrder::rows},
                                                                             {"columns", TileOrder::columns},
                                                                             {"groups", TileOrder::groups}}};

// What a chip could conceivably be: from a hundredth or less of the least to a hundred times the most of anything that
// exists in 2025. Beyond that a number is a mistake (a unit, a power of ten), and laws would answer it with nonsense.
constexpr double kKilo = 1e3, kMega = 1e6, kGiga = 1e9, kTera = 1e12, kPico = 1e-12, kNano = 1e-9;
constexpr Range kShare{0.0, 1.0};
constexpr Range kEfficiency{0.01, 1.0};
constexpr Range kRate{0.0, 1e6};  ///< an SM and clock; the largest today is 8192 (dense fp4 of Blackwell)
constexpr double kLeastRate = 0.01;
constexpr Range kNeededRate{kLeastRate, 1e6};
constexpr Range kOnChip{1024.0, 32.0 * 1024.0 * 1024.0};  ///< memory of an SM; today at most 256 KiB
constexpr Range kOnChipOrNone{0.0, kOnChip.high};
constexpr Range kPerClock{1.0, 16384.0};  ///< bytes a clock of an SM; today 128
constexpr Range kCycles{1.0, 1e5};        ///< today at most 1000
constexpr Range kClock{kMega, 300.0 * kGiga};
/// Where a description does not say: 210 to 345 MHz of the boards of this project, which boost to 1410 to 1980 MHz.
constexpr double kLowestOfBoost = 0.15;
constexpr Range kPower{1.0, 200.0 * kKilo};
constexpr Range kEnergy{1e-3 * kPico, 10.0 * kNano};  ///< a FLOP or a byte
constexpr Range kEnergyIfKnown{0.0, kEnergy.high};
constexpr Range kCache{1024.0, 64.0 * 1024.0 * 1024.0 * 1024.0};  ///< today at most 256 MiB
constexpr Range kMemory{kMega, 64.0 * 1024.0 * kGiga};            ///< today at most 300 GB
constexpr Range kBandwidth{kGiga, 1000.0 * kTera};                ///< DRAM: today at most 8 TB/s
constexpr Range kCacheBandwidth{kGiga, 10000.0 * kTera};
constexpr Range kLinkBandwidth{kMega, 1000.0 * kTera};
constexpr Range kDramLatency{kNano, 1e-3};
constexpr Range kLaunchTime{0.0, 1.0};
constexpr Range kAtomics{0.0, 1e15};  ///< a second

void read_rates(FieldReader& r, MathRates& rates) {
  r.number("fp32", rates.fp32, kNeededRate);
  r.number("fp64", rates.fp64, kRate);
  r.number("fp16", rates.fp16, kRate);
  r.number("int32", rates.int32, kRate);
  r.number("special", rates.special, kNeededRate);
  r.number("tensor_fp16", rates.tensor_fp16, kRate);
  r.number("tensor_fp16_fp16acc", rates.tensor_fp16_fp16acc, kRate);
  r.number("tensor_bf16", rates.tensor_bf16, kRate);
  r.number("tensor_tf32", rates.tensor_tf32, kRate);
  r.number("tensor_int8", rates.tensor_int8, kRate);
  r.number("tensor_fp8", rates.tensor_fp8, kRate);
  r.number("sparsity_factor", rates.sparsity_factor, {1.0, 16.0});
}

void read_sm(FieldReader& r, SmSpec& sm) {
  r.integer("count", sm.count, 1, 100000);
  r.integer("schedulers", sm.schedulers, 1, 64);
  r.integer("max_warps", sm.max_warps, 1, 1024);
  r.integer("max_blocks", sm.max_blocks, 1, 1024);
  r.integer("max_threads_per_block", sm.max_threads_per_block, 32, 32768);
  r.integer("registers", sm.registers, 1024, 1 << 23);
  r.integer("register_allocation_unit", sm.register_allocation_unit, 1, 65536);
  r.quantity("l1_and_shared", sm.l1_and_shared, kOnChip);
  r.quantity("shared_per_sm", sm.shared_per_sm, kOnChip);
  r.quantity("shared_per_block", sm.shared_per_block, kOnChip);
  r.quantity("shared_reserved_per_block", sm.shared_reserved_per_block, kOnChipOrNone);
  r.quantity("shared_allocation_unit", sm.shared_allocation_unit, {1.0, kOnChip.high});
  r.quantities("shared_carveouts", sm.shared_carveouts, kOnChipOrNone);
  r.quantity("shared_bandwidth", sm.shared_bandwidth, kPerClock);
  r.quantity("l1_bandwidth", sm.l1_bandwidth, kPerClock);
  r.quantity("shared_latency", sm.shared_latency, kCycles);
  r.quantity("l1_latency", sm.l1_latency, kCycles);
  r.section("rates", [&] { read_rates(r, sm.rates); });
  r.flag("async_copy", sm.async_copy);
  r.flag("tensor_memory_accelerator", sm.tensor_memory_accelerator);
  r.flag("warpgroup_mma", sm.warpgroup_mma);
}

void read_clock(FieldReader& r, ClockSpec& clock) {
  r.quantity("base", clock.base, kClock);
  r.quantity("boost", clock.boost, kClock);
  r.quantity("boost_tensor", clock.boost_tensor, kClock);
  r.quantity("sustained", clock.sustained, kClock);
  r.quantity("tensor", clock.tensor, kClock);
  r.quantity("tensor_droop", clock.tensor_droop, {0.0, kClock.high});
  clock.lowest = kLowestOfBoost * clock.boost;
  clock.knee = clock.base;
  r.optional_quantity("lowest", clock.lowest, kClock);
  r.optional_quantity("knee", clock.knee, kClock);
  r.optional_number("knee_voltage", clock.knee_voltage, {0.3, 1.0});
}

void read_power(FieldReader& r, PowerSpec& power) {
  r.quantity("limit", power.limit, kPower);
  r.quantity("idle", power.idle, {0.0, kPower.high});
  r.quantity("fp32", power.fp32, kEnergy);
  r.quantity("tensor_fp16", power.tensor_fp16, kEnergyIfKnown);
  r.quantity("tensor_bf16", power.tensor_bf16, kEnergyIfKnown);
  r.quantity("tensor_tf32", power.tensor_tf32, kEnergyIfKnown);
  r.quantity("dram", power.dram, {kEnergy.low, 100.0 * kNano});
  r.optional_quantity("averaging", power.averaging, {0.0, kKilo});
}

void read_memory(FieldReader& r, L2Spec& l2, DramSpec& dram) {
  r.section("l2", [&] {
    r.quantity("capacity", l2.capacity, kCache);
    r.integer("partitions", l2.partitions, 1, 64);
    r.quantity("read_bandwidth", l2.read_bandwidth, kCacheBandwidth);
    r.quantity("write_bandwidth", l2.write_bandwidth, kCacheBandwidth);
    r.optional_quantity("shared_read_bandwidth", l2.shared_read_bandwidth, kCacheBandwidth);
    r.optional_number("atomic_rate", l2.atomic_rate, kAtomics);
    r.optional_number("atomic_address_rate", l2.atomic_address_rate, kAtomics);
    r.quantity("latency", l2.latency, kCycles);
    r.number("resident_full", l2.resident_full, {0.0, 4.0});
    r.number("resident_none", l2.resident_none, {0.01, 4.0});
    r.number("dirty_fraction", l2.dirty_fraction, kShare);
    r.optional_choice<L2Replacement>("replacement", l2.replacement, kReplacements);
    r.optional_choice<L2Writes>("writes", l2.writes, kWrites);
  });
  r.section("dram", [&] {
    r.text("type", dram.type);
    r.quantity("capacity", dram.capacity, kMemory);
    r.quantity("bandwidth", dram.bandwidth, kBandwidth);
    r.number("read_efficiency", dram.read_efficiency, kEfficiency);
    r.number("write_efficiency", dram.write_efficiency, kEfficiency);
    r.number("turnaround", dram.turnaround, kShare);
    r.quantity("latency", dram.latency, kDramLatency);
  });
}

void read_link(FieldReader& r, LinkSpec& link) {
  r.text("type", link.type);
  r.quantity("bandwidth", link.bandwidth, kLinkBandwidth);
  r.integer("count", link.count, 1, 1024);
}

void read_launch(FieldReader& r, LaunchSpec& launch) {
  r.quantity("kernel_fixed", launch.kernel_fixed, kLaunchTime);
  r.quantity("gap", launch.gap, kLaunchTime);
  r.quantity("start_latency", launch.start_latency, kLaunchTime);
  r.quantity("memset", launch.memset, kLaunchTime);
  r.quantity("graph_period", launch.graph_period, kLaunchTime);
  r.number("blocks_per_second", launch.blocks_per_second, {kKilo, 1e13});
  r.integer("queue_depth", launch.queue_depth, 1, 1 << 24);
  r.optional_choice<TileOrder>("tile_order", launch.tile_order, kTileOrders);
}

void read_fields(FieldReader& r, Gpu& gpu) {
  r.choice<Architecture>("architecture", gpu.architecture, kArchitectures);
  r.integer("compute_major", gpu.compute_major, 7, 99);
  r.integer("compute_minor", gpu.compute_minor, 0, 9);
  r.section("sm", [&] { read_sm(r, gpu.sm); });
  r.section("clock", [&] { read_clock(r, gpu.clock); });
  r.section("power", [&] { read_power(r, gpu.power); });
  read_memory(r, gpu.l2, gpu.dram);
  r.section("host_link", [&] { read_link(r, gpu.host_link); });
  r.section("gpu_link", [&] { read_link(r, gpu.gpu_link); });
  r.integer("copy_engines", gpu.copy_engines, 1, 64);
  r.section("launch", [&] { read_launch(r, gpu.launch); });
  r.section("context", [&] {
    r.quantity("driver", gpu.context.driver, {0.0, kTera});
    r.quantity("libraries", gpu.context.libraries, {0.0, kTera});
    r.quantity("eager_loading", gpu.context.eager_loading, {0.0, kTera});
  });
  r.number("price_per_hour", gpu.price_per_hour, {0.0, 1e5});
  read_gemm_menu(r, gpu);
}

/// Values that are fine alone and impossible together; reported at the second of the two keys.
void check_together(const config::Value& root, const Gpu& gpu) {
  const auto require = [&root](bool holds, std::string_view section, std::string_view key, std::string_view message) {
    if (!holds) root[section][key].fail(message);
  };
  require(gpu.sm.shared_per_sm <= gpu.sm.l1_and_shared, "sm", "shared_per_sm", "more than sm.l1_and_shared");
  require(gpu.sm.shared_per_block <= gpu.sm.shared_per_sm, "sm", "shared_per_block", "more than sm.shared_per_sm");
  require(gpu.sm.max_threads_per_block <= 32 * gpu.sm.max_warps, "sm", "max_threads_per_block",
          "a block of this many threads never fits sm.max_warps warps of 32");
  const MathRates& rates = gpu.sm.rates;
  for (const auto& [key, rate] : {std::pair{"fp64", rates.fp64},
                                  {"fp16", rates.fp16},
                                  {"int32", rates.int32},
                                  {"tensor_fp16", rates.tensor_fp16},
                                  {"tensor_fp16_fp16acc", rates.tensor_fp16_fp16acc},
                                  {"tensor_bf16", rates.tensor_bf16},
                                  {"tensor_tf32", rates.tensor_tf32},
                                  {"tensor_int8", rates.tensor_int8},
                                  {"tensor_fp8", rates.tensor_fp8}})
    if (rate != 0.0 && rate < kLeastRate)
      root["sm"]["rates"][key].fail(
          fmt::format("{:g} is out of range, expected 0 (there is no such unit) or at least {:g}", rate, kLeastRate));
  require(gpu.clock.base <= gpu.clock.boost, "clock", "base", "above clock.boost");
  require(gpu.clock.lowest <= gpu.clock.base, "clock", "lowest", "above clock.base");
  require(gpu.clock.knee < gpu.clock.boost || gpu.clock.knee == gpu.clock.base, "clock", "knee",
          "not below clock.boost: the voltage would not rise");
  require(gpu.clock.tensor_droop < gpu.clock.tensor, "clock", "tensor_droop",
          "not below clock.tensor: nothing is left");
  require(gpu.power.idle < gpu.power.limit, "power", "idle", "not below power.limit");
  require(gpu.l2.resident_full < gpu.l2.resident_none, "l2", "resident_none", "not above l2.resident_full");
  require(gpu.l2.capacity < gpu.dram.capacity, "l2", "capacity", "not below dram.capacity");
}

}  // namespace

std::string_view name_of(Architecture architecture) {
  for (const auto& [name, value] : kArchitectures) {
    if (value == architecture) return name;
  }
  return "unknown";
}

void read_gpu(const config::Value& root, Gpu& gpu, std::vector<SheetRow>* rows, std::vector<SheetRow>* assumed) {
  FieldReader reader(root, rows, assumed);
  reader.document([&] { read_fields(reader, gpu); }, {"title", "measured"});
  gpu.title = root["title"].text();
  check_together(root, gpu);
}

}  // namespace ridgeline
