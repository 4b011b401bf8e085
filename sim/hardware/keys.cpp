#include "sim/hardware/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "sim/hardware/describe_gemm_menu.h"

namespace ridgeline {
namespace {

using config::Range;

// What a chip could conceivably be: from a hundredth or less of the least to a hundred times the most of anything that
// exists in 2025. Beyond that a number is a mistake (a unit, a power of ten), and laws would answer it with nonsense.
constexpr double kKilo = 1e3, kMega = 1e6, kGiga = 1e9, kTera = 1e12, kPico = 1e-12, kNano = 1e-9;
constexpr Range kShare{0.0, 1.0};
constexpr Range kEfficiency{0.01, 1.0};
constexpr Range kRate{0.01, 1e6};  ///< an SM and clock; the largest today is 8192 (Blackwell, fp4)
constexpr Range kOnChip{1024.0, 32.0 * 1024.0 * 1024.0};  ///< memory of an SM; today at most 256 KiB
constexpr Range kOnChipOrNone{0.0, kOnChip.high};
constexpr Range kPerClock{1.0, 16384.0};  ///< bytes a clock of an SM; today 128
constexpr Range kCycles{1.0, 1e5};        ///< today at most 1000
constexpr Range kClock{kMega, 300.0 * kGiga};
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
constexpr Range kContext{0.0, kTera};
constexpr Range kAnything{};

constexpr std::array<std::pair<std::string_view, Architecture>, 6> kArchitectures{
    {{"volta", Architecture::volta},
     {"turing", Architecture::turing},
     {"ampere", Architecture::ampere},
     {"ada", Architecture::ada},
     {"hopper", Architecture::hopper},
     {"blackwell", Architecture::blackwell}}};
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

/// A field of Gpu by the members that lead to it.
template <auto... Path>
decltype(auto) field(Gpu& gpu) {
  return (gpu.*....*Path);
}
template <auto... Path>
decltype(auto) field(const Gpu& gpu) {
  return (gpu.*....*Path);
}
template <auto... Path>
using FieldOf = std::remove_cvref_t<decltype(field<Path...>(std::declval<Gpu&>()))>;

template <auto... Path>
void read_field(const config::Value& value, const HardwareKey& key, Gpu& gpu) {
  using Type = FieldOf<Path...>;
  auto& out = field<Path...>(gpu);
  if constexpr (std::is_same_v<Type, std::string>) {
    out = value.text();
  } else if constexpr (std::is_same_v<Type, bool>) {
    out = value.boolean();
  } else if constexpr (std::is_same_v<Type, int>) {
    out = static_cast<int>(
        value.integer({static_cast<std::int64_t>(key.range.low), static_cast<std::int64_t>(key.range.high)}));
  } else if constexpr (std::is_same_v<Type, double>) {
    if (!key.zero_is_none) {
      out = value.number(key.range);
    } else {
      const double given = value.number({0.0, key.range.high});
      if (!key.allows(given))
        value.fail(fmt::format("{:g} is out of range, expected 0 (there is no such unit) or at least {:g}", given,
                               key.range.low));
      out = given;
    }
  } else {
    out = value.quantity<Type>(key.range);
  }
}

template <auto... Path>
std::string show_field(const Gpu& gpu) {
  using Type = FieldOf<Path...>;
  const auto& value = field<Path...>(gpu);
  if constexpr (std::is_same_v<Type, std::string>) return value;
  else if constexpr (std::is_same_v<Type, bool>) return value ? "true" : "false";
  else if constexpr (std::is_arithmetic_v<Type>) return fmt::format("{:g}", 1.0 * value);
  else return to_string(Measure{value.value(), config::kDimensionOf<Type>});
}

template <auto... Path>
double get_field(const Gpu& gpu) {
  if constexpr (std::is_arithmetic_v<FieldOf<Path...>>) return field<Path...>(gpu);
  else return field<Path...>(gpu).value();
}

template <auto... Path>
void set_field(Gpu& gpu, double value) {
  field<Path...>(gpu) = FieldOf<Path...>(value);
}

template <typename Type>
constexpr KeyKind kind_of() {
  if (std::is_same_v<Type, std::string>) return KeyKind::text;
  if (std::is_same_v<Type, bool>) return KeyKind::flag;
  if (std::is_same_v<Type, int>) return KeyKind::integer;
  return std::is_same_v<Type, double> ? KeyKind::number : KeyKind::quantity;
}

constexpr Laws one(Law law) { return static_cast<Laws>(law); }

template <auto... Path>
HardwareKey row(std::string_view key, Range range, Better better, Laws laws, std::string_view meaning) {
  using Type = FieldOf<Path...>;
  HardwareKey result;
  result.key = key;
  result.kind = kind_of<Type>();
  if constexpr (!std::is_arithmetic_v<Type> && !std::is_same_v<Type, std::string>)
    result.dimension = config::kDimensionOf<Type>;
  result.range = range;
  result.better = better;
  result.laws = laws;
  result.meaning = meaning;
  result.read = read_field<Path...>;
  result.show = show_field<Path...>;
  if constexpr (!std::is_same_v<Type, bool> && !std::is_same_v<Type, std::string>) {
    result.get = get_field<Path...>;
    result.set = set_field<Path...>;
  }
  return result;
}

/// A number that a file need not say.
HardwareKey optional(HardwareKey key) {
  key.required = false;
  return key;
}
/// Operations a clock of a unit that a chip may lack.
HardwareKey if_any(HardwareKey key) {
  key.zero_is_none = true;
  return key;
}

template <const auto& kChoices, auto... Path>
HardwareKey choice_row(std::string_view key, Laws laws, std::string_view meaning) {
  HardwareKey result;
  result.key = key;
  result.kind = KeyKind::text;
  result.laws = laws;
  result.meaning = meaning;
  result.read = [](const config::Value& value, const HardwareKey&, Gpu& gpu) {
    using Type = FieldOf<Path...>;
    field<Path...>(gpu) = value.choice<Type>(kChoices);
  };
  for (const auto& [name, value] : kChoices) result.choices += (result.choices.empty() ? "" : ", ") + std::string(name);
  result.show = [](const Gpu& gpu) {
    for (const auto& [name, value] : kChoices)
      if (value == field<Path...>(gpu)) return std::string(name);
    return std::string();
  };
  return result;
}

HardwareKey gemm_menu_key() {
  HardwareKey result;
  result.key = "gemm.menu";
  result.kind = KeyKind::text;
  result.laws = one(Law::choice);
  result.meaning =
      "Whether gemm.tiles stand beside the kernels known to the laws (extend) or replace those of their class";
  result.read = [](const config::Value& value, const HardwareKey&, Gpu& gpu) { read_gemm_menu_way(value, gpu); };
  result.choices = "extend, replace";
  result.show = [](const Gpu& gpu) { return std::string(gpu.gemm.replace ? "replace" : "extend"); };
  result.required = false;
  return result;
}

HardwareKey gemm_tiles_key() {
  HardwareKey result;
  result.key = "gemm.tiles";
  result.kind = KeyKind::list;
  result.laws = one(Law::choice);
  result.meaning = "Further kernels of the matrix library, for what-ifs (docs/what-if-products.md)";
  result.read = [](const config::Value& value, const HardwareKey&, Gpu& gpu) { read_gemm_tiles(value, gpu); };
  result.show = [](const Gpu&) { return std::string("none"); };
  result.required = false;
  return result;
}

// Members, so that a row fits a line.
constexpr auto kSm = &Gpu::sm;
constexpr auto kRates = &SmSpec::rates;
constexpr auto kClk = &Gpu::clock;
constexpr auto kPow = &Gpu::power;
constexpr auto kL2 = &Gpu::l2;
constexpr auto kDram = &Gpu::dram;
constexpr auto kLaunch = &Gpu::launch;

// clang-format off
void add_general(std::vector<HardwareKey>& k) {
  using enum Law;
  k.push_back(choice_row<kArchitectures, &Gpu::architecture>("architecture", choice | memory, "Generation of the chip: which kernels and workspaces the libraries bring for it"));
  k.push_back(row<&Gpu::compute_major>("compute_major", {7, 99}, Better::neither, one(choice), "Compute capability, the number before the dot"));
  k.push_back(row<&Gpu::compute_minor>("compute_minor", {0, 9}, Better::neither, one(choice), "Compute capability, the number after the dot"));
}

void add_sm(std::vector<HardwareKey>& k) {
  using enum Law;
  k.push_back(row<kSm, &SmSpec::count>("sm.count", {1, 100000}, Better::more, stream | code | product | attention | convolution | power | hierarchy | roofline | peak, "Streaming multiprocessors that programs can use"));
  k.push_back(row<kSm, &SmSpec::schedulers>("sm.schedulers", {1, 64}, Better::more, stream | code | product, "Warp schedulers of an SM: instructions it issues a clock"));
  k.push_back(row<kSm, &SmSpec::max_warps>("sm.max_warps", {1, 1024}, Better::more, occupancy | stream, "Warps resident on an SM at most"));
  k.push_back(row<kSm, &SmSpec::max_blocks>("sm.max_blocks", {1, 1024}, Better::more, one(occupancy), "Thread blocks resident on an SM at most"));
  k.push_back(row<kSm, &SmSpec::max_threads_per_block>("sm.max_threads_per_block", {32, 32768}, Better::more, one(choice), "Threads of a block at most: kernels with larger ones do not fit"));
  k.push_back(row<kSm, &SmSpec::registers>("sm.registers", {1024, 1 << 23}, Better::more, occupancy | product, "Registers of an SM, of 32 bits"));
  k.push_back(row<kSm, &SmSpec::register_allocation_unit>("sm.register_allocation_unit", {1, 65536}, Better::less, one(occupancy), "Registers that a warp is given at a time"));
  k.push_back(row<kSm, &SmSpec::l1_and_shared>("sm.l1_and_shared", kOnChip, Better::more, stream | hierarchy, "Memory of an SM that L1 and shared memory divide"));
  k.push_back(row<kSm, &SmSpec::shared_per_sm>("sm.shared_per_sm", kOnChip, Better::more, occupancy | attention, "Shared memory of an SM at most"));
  k.push_back(row<kSm, &SmSpec::shared_per_block>("sm.shared_per_block", kOnChip, Better::more, one(choice), "Shared memory of a thread block at most: kernels that need more do not fit"));
  k.push_back(row<kSm, &SmSpec::shared_reserved_per_block>("sm.shared_reserved_per_block", kOnChipOrNone, Better::less, one(occupancy), "Shared memory that the driver takes of every block"));
  k.push_back(row<kSm, &SmSpec::shared_allocation_unit>("sm.shared_allocation_unit", {1.0, kOnChip.high}, Better::less, one(occupancy), "Shared memory that a block is given at a time"));
  k.push_back(row<kSm, &SmSpec::shared_bandwidth>("sm.shared_bandwidth", kPerClock, Better::more, code | product | attention, "Shared memory read or written a clock by an SM"));
  k.push_back(row<kSm, &SmSpec::l1_bandwidth>("sm.l1_bandwidth", kPerClock, Better::more, one(code), "L1 read a clock by an SM"));
  k.push_back(row<kSm, &SmSpec::shared_latency>("sm.shared_latency", kCycles, Better::less, one(code), "Load from shared memory"));
  k.push_back(row<kSm, &SmSpec::l1_latency>("sm.l1_latency", kCycles, Better::less, one(code), "Load that hits the L1"));
  k.push_back(row<kSm, kRates, &MathRates::fp32>("sm.rates.fp32", kRate, Better::more, product | attention | roofline | peak, "Multiply-adds in fp32 a clock of an SM, CUDA cores"));
  k.push_back(row<kSm, kRates, &MathRates::int32>("sm.rates.int32", kRate, Better::more, one(stream), "Integer operations a clock of an SM"));
  k.push_back(row<kSm, kRates, &MathRates::special>("sm.rates.special", kRate, Better::more, one(attention), "Exponentials and other special functions a clock of an SM"));
  k.push_back(if_any(row<kSm, kRates, &MathRates::tensor_fp16>("sm.rates.tensor_fp16", kRate, Better::more, product | attention | roofline | peak, "Dense multiply-adds in fp16 with fp32 sums a clock of an SM, tensor cores")));
  k.push_back(if_any(row<kSm, kRates, &MathRates::tensor_bf16>("sm.rates.tensor_bf16", kRate, Better::more, product | attention | roofline | peak, "The same in bf16; 0 = no such unit")));
  k.push_back(if_any(row<kSm, kRates, &MathRates::tensor_tf32>("sm.rates.tensor_tf32", kRate, Better::more, product | roofline | peak, "The same in TF32; 0 = no such unit")));
  k.push_back(row<kSm, kRates, &MathRates::sparsity_factor>("sm.rates.sparsity_factor", {1.0, 16.0}, Better::more, one(product), "Tensor-core rate with one operand 2:4 sparse, over dense; 1 = no such unit"));
  k.push_back(row<kSm, &SmSpec::async_copy>("sm.async_copy", kAnything, Better::neither, choice | product, "Copies to shared memory without registers (cp.async)"));
  k.push_back(row<kSm, &SmSpec::tensor_memory_accelerator>("sm.tensor_memory_accelerator", kAnything, Better::neither, one(choice), "A unit that copies tiles (TMA)"));
  k.push_back(row<kSm, &SmSpec::warpgroup_mma>("sm.warpgroup_mma", kAnything, Better::neither, choice | product, "Tensor-core instructions of four warps (wgmma)"));
  k.push_back(optional(row<kSm, &SmSpec::tensor_memory>("sm.tensor_memory", kAnything, Better::neither, choice | product, "Tensor-core instructions that keep sums in a memory of their own and that a pair of SMs can share (tcgen05); false where not given")));
}

void add_clock_and_power(std::vector<HardwareKey>& k) {
  using enum Law;
  k.push_back(row<kClk, &ClockSpec::boost>("clock.boost", kClock, Better::more, roofline | peak, "Boost clock of the datasheet: peaks of the CUDA cores"));
  k.push_back(row<kClk, &ClockSpec::boost_tensor>("clock.boost_tensor", kClock, Better::more, one(peak), "Clock of the datasheet's tensor-core peaks"));
  k.push_back(row<kClk, &ClockSpec::sustained>("clock.sustained", kClock, Better::more, stream | code | product | power | hierarchy, "Highest clock under load without a tensor-core kernel"));
  k.push_back(row<kClk, &ClockSpec::tensor>("clock.tensor", kClock, Better::more, product | attention | power, "Clock of a tensor-core kernel with idle pipes"));
  k.push_back(row<kClk, &ClockSpec::tensor_droop>("clock.tensor_droop", {0.0, kClock.high}, Better::less, product | power, "What a fully busy tensor pipe takes off clock.tensor"));
  k.push_back(row<kClk, &ClockSpec::lowest>("clock.lowest", kClock, Better::neither, one(power), "Clock at which the power limit stops slowing the SMs down"));
  k.push_back(row<kClk, &ClockSpec::knee>("clock.knee", kClock, Better::more, one(power), "Clock up to which the voltage is the least there is; from here to clock.boost it rises in a straight line"));
  k.push_back(row<kClk, &ClockSpec::knee_voltage>("clock.knee_voltage", {0.3, 1.0}, Better::less, one(power), "Voltage of the SMs at and below clock.knee, over that at clock.boost"));
  k.push_back(row<kPow, &PowerSpec::limit>("power.limit", kPower, Better::more, one(power), "Power that the board may draw"));
  k.push_back(row<kPow, &PowerSpec::idle>("power.idle", {0.0, kPower.high}, Better::less, one(power), "Power at clock.boost with nothing running"));
  k.push_back(row<kPow, &PowerSpec::fp32>("power.fp32", kEnergy, Better::less, one(power), "Energy of a FLOP on the CUDA cores, all included, at the voltage of clock.boost"));
  k.push_back(row<kPow, &PowerSpec::tensor_fp16>("power.tensor_fp16", kEnergyIfKnown, Better::less, one(power), "Energy of a FLOP on the tensor cores in fp16"));
  k.push_back(row<kPow, &PowerSpec::tensor_bf16>("power.tensor_bf16", kEnergyIfKnown, Better::less, one(power), "Energy of a FLOP on the tensor cores in bf16"));
  k.push_back(row<kPow, &PowerSpec::tensor_tf32>("power.tensor_tf32", kEnergyIfKnown, Better::less, one(power), "Energy of a FLOP on the tensor cores in TF32"));
  k.push_back(row<kPow, &PowerSpec::dram>("power.dram", {kEnergy.low, 100.0 * kNano}, Better::less, one(power), "Energy of a byte between DRAM and registers"));
  k.push_back(optional(row<kPow, &PowerSpec::averaging>("power.averaging", {0.0, kKilo}, Better::more, one(power), "How long a load may exceed the limit before the clock comes down")));
  k.push_back(optional(row<kPow, &PowerSpec::board_spread>("power.board_spread", {0.0, 0.3}, Better::less, one(boards), "How far the energies that boards of this model need for the same work differ (a standard deviation): several GPUs go at the pace of the slowest; 0.03 where not given")));
}

void add_memory(std::vector<HardwareKey>& k) {
  using enum Law;
  k.push_back(row<kL2, &L2Spec::capacity>("l2.capacity", kCache, Better::more, stream | product | residency | hierarchy, "Capacity of the L2"));
  k.push_back(row<kL2, &L2Spec::partitions>("l2.partitions", {1, 64}, Better::less, one(hierarchy), "Parts of the L2 that keep copies of each other's lines"));
  k.push_back(row<kL2, &L2Spec::read_bandwidth>("l2.read_bandwidth", kCacheBandwidth, Better::more, stream | code | product | hierarchy, "Reads that hit the L2, all SMs together"));
  k.push_back(row<kL2, &L2Spec::write_bandwidth>("l2.write_bandwidth", kCacheBandwidth, Better::more, stream | code, "Writes that hit the L2, all SMs together"));
  k.push_back(optional(row<kL2, &L2Spec::shared_read_bandwidth>("l2.shared_read_bandwidth", kCacheBandwidth, Better::more, one(code), "Reads of lines that many SMs ask for; as l2.read_bandwidth where not given")));
  k.push_back(optional(row<kL2, &L2Spec::atomic_rate>("l2.atomic_rate", kAtomics, Better::more, one(code), "Atomic additions a second of all SMs, each to an address of its own; 0 = not known to limit")));
  k.push_back(optional(row<kL2, &L2Spec::atomic_address_rate>("l2.atomic_address_rate", kAtomics, Better::more, one(code), "Atomic additions a second to one address; 0 = not known to limit")));
  k.push_back(row<kL2, &L2Spec::latency>("l2.latency", kCycles, Better::less, stream | code, "Load that hits the near part of the L2"));
  k.push_back(row<kL2, &L2Spec::resident_full>("l2.resident_full", {0.0, 4.0}, Better::more, one(residency), "Reuse distance up to which everything still hits, of the capacity"));
  k.push_back(row<kL2, &L2Spec::resident_none>("l2.resident_none", {0.01, 4.0}, Better::more, one(residency), "Reuse distance from which nothing hits, of the capacity"));
  k.push_back(row<kL2, &L2Spec::dirty_fraction>("l2.dirty_fraction", kShare, Better::neither, residency | hierarchy, "Share of the capacity that written lines may hold"));
  k.push_back(optional(choice_row<kReplacements, kL2, &L2Spec::replacement>("l2.replacement", one(hierarchy), "Which line a full L2 gives up")));
  k.push_back(optional(choice_row<kWrites, kL2, &L2Spec::writes>("l2.writes", one(hierarchy), "Whether written lines wait in the L2 or go to the DRAM at once")));
  k.push_back(row<kDram, &DramSpec::type>("dram.type", kAnything, Better::neither, one(description), "Kind of DRAM: HBM2e, GDDR6X; chooses defaults where a file leaves out efficiencies"));
  k.push_back(row<kDram, &DramSpec::capacity>("dram.capacity", kMemory, Better::more, one(memory), "Device memory that programs can use"));
  k.push_back(row<kDram, &DramSpec::bandwidth>("dram.bandwidth", kBandwidth, Better::more, stream | code | product | attention | convolution | copies | hierarchy | roofline | peak, "Bandwidth of the DRAM by datasheet"));
  k.push_back(row<kDram, &DramSpec::read_efficiency>("dram.read_efficiency", kEfficiency, Better::more, stream | code | copies | hierarchy, "Achieved by pure reads, of dram.bandwidth"));
  k.push_back(row<kDram, &DramSpec::write_efficiency>("dram.write_efficiency", kEfficiency, Better::more, stream | code | copies | hierarchy, "Achieved by pure writes, of dram.bandwidth"));
  k.push_back(row<kDram, &DramSpec::turnaround>("dram.turnaround", kShare, Better::less, stream | code | hierarchy, "Loss where reads and writes mix: 1/eff = r/e_r + w/e_w + 2 turnaround min(r, w)"));
  k.push_back(row<kDram, &DramSpec::latency>("dram.latency", kDramLatency, Better::less, stream | code, "Load that misses every cache"));
  k.push_back(row<&Gpu::host_link, &LinkSpec::bandwidth>("host_link.bandwidth", kLinkBandwidth, Better::more, one(copies), "Achieved by copies to the host or back, one way"));
}

void add_launch_and_rest(std::vector<HardwareKey>& k) {
  using enum Law;
  k.push_back(row<kLaunch, &LaunchSpec::kernel_fixed>("launch.kernel_fixed", kLaunchTime, Better::less, stream | code | timeline | hierarchy, "Duration of an empty kernel"));
  k.push_back(row<kLaunch, &LaunchSpec::gap>("launch.gap", kLaunchTime, Better::less, one(timeline), "Between two kernels of a busy stream"));
  k.push_back(row<kLaunch, &LaunchSpec::start_latency>("launch.start_latency", kLaunchTime, Better::less, one(timeline), "From the return of a launch to the start of its kernel on an idle GPU"));
  k.push_back(row<kLaunch, &LaunchSpec::memset>("launch.memset", kLaunchTime, Better::less, one(copies), "Duration of a small memset"));
  k.push_back(row<kLaunch, &LaunchSpec::graph_period>("launch.graph_period", kLaunchTime, Better::less, one(timeline), "From kernel to kernel inside a CUDA graph, both empty"));
  k.push_back(optional(row<kLaunch, &LaunchSpec::graph_gap>("launch.graph_gap", kLaunchTime, Better::less, one(timeline), "Between two kernels of a CUDA graph that do something; 0.25 us, an H200's, where not given")));
  k.push_back(row<kLaunch, &LaunchSpec::blocks_per_second>("launch.blocks_per_second", {kKilo, 1e13}, Better::more, stream | code | hierarchy, "Thread blocks that the dispatcher starts a second"));
  k.push_back(row<kLaunch, &LaunchSpec::queue_depth>("launch.queue_depth", {1, 1 << 24}, Better::more, one(timeline), "Launches that the host may run ahead"));
  k.push_back(optional(choice_row<kTileOrders, kLaunch, &LaunchSpec::tile_order>("launch.tile_order", one(hierarchy), "Order in which tiles of a matrix product go to the SMs")));
  k.push_back(row<&Gpu::context, &ContextSpec::driver>("context.driver", kContext, Better::less, one(memory), "Device memory of a CUDA context alone"));
  k.push_back(row<&Gpu::context, &ContextSpec::libraries>("context.libraries", kContext, Better::less, one(memory), "Device memory of the library code that a training step loads"));
  k.push_back(row<&Gpu::context, &ContextSpec::eager_loading>("context.eager_loading", kContext, Better::less, one(memory), "Further device memory where all code is loaded at the start (before CUDA 11.7)"));
  k.push_back(optional(row<&Gpu::price_per_hour>("price_per_hour", {0.0, 1e5}, Better::less, one(price), "Rent of the board in USD an hour; 0 = not known")));
  k.push_back(gemm_menu_key());
  k.push_back(gemm_tiles_key());
}
// clang-format on

}  // namespace

std::string_view name_of(Architecture architecture) {
  for (const auto& [name, value] : kArchitectures)
    if (value == architecture) return name;
  return "unknown";
}

std::span<const HardwareKey> hardware_keys() {
  static const std::vector<HardwareKey> keys = [] {
    std::vector<HardwareKey> k;
    add_general(k);
    add_sm(k);
    add_clock_and_power(k);
    add_memory(k);
    add_launch_and_rest(k);
    return k;
  }();
  return keys;
}

const HardwareKey* find_hardware_key(std::string_view key) {
  const auto keys = hardware_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [key](const HardwareKey& k) { return k.key == key; });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace ridgeline
