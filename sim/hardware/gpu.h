// A GPU as the laws see it: immutable numbers read from hw/NAME.yaml.
//
// Everything here is a fact about a chip or a board. Achieved bandwidths are efficiencies of the datasheet's, so that a
// what-if on `dram.bandwidth` carries through. Latencies are cycles of the SM clock unless the name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gemm_menu.h"
#include "sim/units/quantity.h"

namespace ridgeline {

enum class Architecture : std::uint8_t { volta, turing, ampere, ada, hopper, blackwell };
std::string_view name_of(Architecture architecture);

/// Multiply-adds a clock an SM, dense. 0 = the unit does not exist.
struct MathRates {
  double fp32 = 0, int32 = 0;                                ///< CUDA cores
  double special = 16;                                       ///< special-function unit operations a clock
  double tensor_fp16 = 0, tensor_bf16 = 0, tensor_tf32 = 0;  ///< fp32 accumulate
  double sparsity_factor = 1;  ///< of the tensor cores where one operand is 2:4 sparse, over dense; 1 = no such unit
  bool operator==(const MathRates&) const = default;
};

struct SmSpec {
  int count = 0;
  int schedulers = 4;
  double issue_rate = 1.0;  ///< instructions a scheduler issues a clock; what-ifs change it
  int max_warps = 64, max_blocks = 32, max_threads_per_block = 1024;
  int registers = 65536;
  int register_allocation_unit = 256;     ///< registers, per warp
  Bytes l1_and_shared;                    ///< unified capacity
  Bytes shared_per_sm, shared_per_block;  ///< most a kernel can have
  Bytes shared_reserved_per_block, shared_allocation_unit;
  BytesPerCycle shared_bandwidth;  ///< a clock an SM
  BytesPerCycle l1_bandwidth;
  Cycles shared_latency, l1_latency;
  MathRates rates;
  bool async_copy = false;                 ///< cp.async (Ampere on)
  bool tensor_memory_accelerator = false;  ///< TMA (Hopper on)
  bool warpgroup_mma = false;              ///< wgmma (Hopper)
  bool tensor_memory = false;              ///< tcgen05: sums in a memory of their own, pairs of SMs (Blackwell 10.x)
  bool operator==(const SmSpec&) const = default;
};

struct ClockSpec {
  Hertz base, boost;           ///< datasheet; the paper peaks of the CUDA cores and the energies of `power` use boost
  Hertz boost_tensor;          ///< datasheet: clock of the paper peaks of the tensor cores (lower than boost on Hopper)
  Hertz sustained;             ///< highest clock seen under load without a tensor-core kernel
  Hertz tensor;                ///< clock of a tensor-core kernel with idle pipes …
  Hertz tensor_droop;          ///< … less this much at full tensor-pipe activity
  Hertz lowest;                ///< where the power limit stops slowing the SMs down
  Hertz knee;                  ///< up to here the voltage is the least there is; from here it rises in a straight line
  double knee_voltage = 0.75;  ///< of the SMs at and below `knee`, over that at `boost`
  bool operator==(const ClockSpec&) const = default;
};

struct PowerSpec {
  Watts limit, idle;                                          ///< board limit; power at clock.boost and nothing running
  JoulesPerFlop fp32, tensor_fp16, tensor_bf16, tensor_tf32;  ///< all-in, at the voltage of clock.boost
  JoulesPerByte dram;                                         ///< from the DRAM to the registers, likewise
  Seconds averaging;  ///< a load may exceed the limit this long before the clock comes down; 0 = at once
  /// Standard deviation of the energy that boards of the model need for the same work. 8 % lie between the whiskers of
  /// times under the limit on five clusters (Sinha et al., SC 2022: 1.5 % standard deviation), and time goes with the
  /// root of the energy there.
  double board_spread = 0.03;
  double board = 1.0;  ///< no key: energies of this board over the described one's (timing/board_spread.h)
  bool operator==(const PowerSpec&) const = default;
};

/// Which line a full L2 gives up. What-ifs change it; the chips do as `aged` says.
enum class L2Replacement : std::uint8_t {
  aged,    ///< the one unused longest, dirty lines ageing more slowly
  lru,     ///< the one unused longest
  random,  ///< any
  none     ///< there is no L2: every request goes to the DRAM
};
enum class L2Writes : std::uint8_t { back, through };
/// In which order a matrix product's tiles are handed to the SMs.
enum class TileOrder : std::uint8_t { automatic, rows, columns, groups };

struct L2Spec {
  Bytes capacity;
  int partitions = 1;
  BytesPerSecond read_bandwidth, write_bandwidth;  ///< measured or estimated, hits
  BytesPerSecond shared_read_bandwidth;            ///< hits of lines that many SMs ask for; 0 = as read_bandwidth
  /// 32-bit atomic additions a second of all SMs together, each thread to an address of its own, and all to one. 0 =
  /// unknown.
  double atomic_rate = 0, atomic_address_rate = 0;
  Cycles latency;
  double resident_full = 0.56;   ///< share of capacity of reuse distance up to which everything still hits …
  double resident_none = 0.83;   ///< … and from which nothing does
  double dirty_fraction = 0.46;  ///< most of the capacity that holds dirty lines
  L2Replacement replacement = L2Replacement::aged;  ///< these two are read by the simulated hierarchy alone
  L2Writes writes = L2Writes::back;
  bool operator==(const L2Spec&) const = default;
};

struct DramSpec {
  std::string type;  ///< HBM2e, GDDR6X …
  Bytes capacity;
  BytesPerSecond bandwidth;                                ///< datasheet
  double read_efficiency = 0.92, write_efficiency = 0.92;  ///< achieved by pure streams, of the datasheet's
  double turnaround = 0.05;  ///< loss where reads and writes mix: 1/eff = r/e_r + w/e_w + 2·turnaround·min(r,w)
  Seconds latency;
  bool operator==(const DramSpec&) const = default;
};

struct LinkSpec {
  BytesPerSecond bandwidth;  ///< a direction, achieved
  bool operator==(const LinkSpec&) const = default;
};

struct LaunchSpec {
  Seconds kernel_fixed;                         ///< duration of an empty kernel
  Seconds gap;                                  ///< between two kernels of a saturated stream
  Seconds start_latency;                        ///< launch call returned → kernel starts on an idle GPU
  Seconds memset;                               ///< duration of a small memset
  Seconds graph_period;                         ///< empty kernel to empty kernel inside a CUDA graph
  Seconds graph_gap{0.25e-6};                   ///< between two kernels of a CUDA graph that do something; as an H200's
  double blocks_per_second = 0;                 ///< thread blocks the dispatcher starts
  int queue_depth = 1024;                       ///< launches the host may run ahead
  TileOrder tile_order = TileOrder::automatic;  ///< read by the simulated hierarchy alone
  bool operator==(const LaunchSpec&) const = default;
};

struct ContextSpec {
  Bytes driver;         ///< CUDA context alone
  Bytes libraries;      ///< modules a training step loads lazily (PyTorch, cuBLAS, cuDNN kernels)
  Bytes eager_loading;  ///< additional when every module is loaded at start (before CUDA 11.7 / PyTorch 1.13)
  bool operator==(const ContextSpec&) const = default;
};

struct Gpu {
  std::string name, title;
  Architecture architecture = Architecture::ampere;
  int compute_major = 8, compute_minor = 0;
  SmSpec sm;
  ClockSpec clock;
  PowerSpec power;
  L2Spec l2;
  DramSpec dram;
  LinkSpec host_link;
  LaunchSpec launch;
  ContextSpec context;
  GemmMenuChange gemm;        ///< what-if kernels of the matrix library; none on the chips as they are
  double price_per_hour = 0;  ///< USD, for studies; 0 = unknown

  /// Peak as a datasheet states it, dense: of the CUDA cores at `boost` …
  /// Every number and name alike.
  bool operator==(const Gpu&) const = default;
  [[nodiscard]] FlopsPerSecond peak(double multiply_adds_per_clock) const {
    return FlopsPerSecond{2.0 * multiply_adds_per_clock * sm.count * clock.boost.value()};
  }
  /// … and of the tensor cores at `boost_tensor`.
  [[nodiscard]] FlopsPerSecond tensor_peak(double multiply_adds_per_clock) const {
    return FlopsPerSecond{2.0 * multiply_adds_per_clock * sm.count * clock.boost_tensor.value()};
  }
};

}  // namespace ridgeline
