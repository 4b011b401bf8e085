// Collectives as they were timed (files of kind "collectives"), and which of them no fit may see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/network/cluster.h"
#include "sim/network/collective_time.h"
#include "sim/study/validation/measured_files.h"
#include "sim/units/quantity.h"
#include "sim/workload/collective.h"

namespace ridgeline {

/// A cluster that measured, with its GPU.
struct MeasuredCluster {
  std::string key;  ///< a name of hw/clusters, or the mapping that describes it
  Cluster cluster;
  Gpu gpu;
};

/// How a time came about, and so which time of the law it compares with.
enum class TimedAs : std::uint8_t {
  alone,        ///< events around one call on idle devices, launched ahead
  nccl_tests,   ///< calls back to back, one process a GPU
  one_process,  ///< the same from one process that launches the kernels of all GPUs one after the other
  torch         ///< events around one call of torch.distributed, the host's part between them
};

struct MeasuredCollective {
  Collective collective;
  int cluster = 0;  ///< index into MeasuredCollectives::clusters
  Placement placement;
  Seconds time;  ///< as `timed` says
  TimedAs timed = TimedAs::alone;
  std::string series;  ///< rows measured together: "h200-x4", "vtrain-lut-a100-x8"
  bool published = false;
  std::string trust;  ///< of published ones: high, medium …
  const MeasuredFile* file = nullptr;
  std::size_t line = 0;     ///< in its file, from 1
  bool held_out = false;    ///< no fit sees it
  std::uint64_t shape = 0;  ///< hash of series, operation, ranks and bytes
  std::uint64_t row = 0;    ///< hash of the line
};

struct MeasuredCollectives {
  std::vector<MeasuredCluster> clusters;
  std::vector<MeasuredCollective> rows;
};

/// All, in the order of the index, which must outlive the result; exchanges in a circle ("ring") are left out. Throws
/// UserError for a file that cannot be read or a row without a cluster.
MeasuredCollectives load_measured_collectives(const MeasurementIndex& index);

/// Below this the time of `one_process` and `torch` is the host's, not the links'.
inline constexpr std::int64_t kLargeCollective = 1 << 20;
bool shows_the_links(const MeasuredCollective& row);

/// The time that a row's way of timing shows of a kernel, with `loop` and `call` as CollectiveTime has them.
Seconds shown_time(const MeasuredCollective& row, Seconds loop, Seconds call);

}  // namespace ridgeline
