#include "sim/study/validation/measured_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_case.h"
#include "sim/network/load_cluster.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

/// The cluster of a row: what the row says, or so many GPUs of the machine that measured.
std::string cluster_key(const Json& row, const MeasuredFile& file) {
  if (row.contains("cluster"))
    return row["cluster"].is_string() ? row["cluster"].get<std::string>() : row["cluster"].dump();
  if (file.machine.hardware != "nvidia-h200-sxm-141gb")
    throw UserError(fmt::format("{}: a row without \"cluster\"", file.name));
  return fmt::format("h200-x{}", row.at("world").get<int>());
}

// A host launches a kernel each 11 us: with one process for all GPUs of a node, calls of up to 3 MiB take 51 us of four
// A100, 73 to 78 us of six and seven, 92 us of eight (measurements/public, series vtrain-lut-a100). A host's part of a
// call of torch.distributed is the `collective` of hw/hosts/default.yaml.
constexpr double kOneProcessLaunch = 11e-6, kTorchCall = 15e-6;

TimedAs timed_as(const Json& row) {
  const std::string how = row.value("timed", "alone");
  if (how == "nccl-tests") return TimedAs::nccl_tests;
  if (how == "nccl-tests in one process") return TimedAs::one_process;
  if (how == "torch") return TimedAs::torch;
  return TimedAs::alone;
}

int cluster_index(std::vector<MeasuredCluster>& clusters, const std::string& key) {
  const auto found = std::find_if(clusters.begin(), clusters.end(), [&](const auto& one) { return one.key == key; });
  if (found != clusters.end()) return static_cast<int>(found - clusters.begin());
  Cluster cluster = load_cluster(config::parse_yaml(key, "cluster"));
  Gpu gpu = load_gpu(cluster.gpu_name);
  clusters.push_back({key, std::move(cluster), std::move(gpu)});
  return static_cast<int>(clusters.size()) - 1;
}

}  // namespace

bool shows_the_links(const MeasuredCollective& row) {
  const bool host = row.timed == TimedAs::one_process || row.timed == TimedAs::torch;
  return !host || row.collective.bytes >= kLargeCollective;
}

Seconds shown_time(const MeasuredCollective& row, Seconds loop, Seconds call) {
  switch (row.timed) {
    case TimedAs::nccl_tests: return loop;
    case TimedAs::one_process: return std::max(loop, Seconds{kOneProcessLaunch * row.placement.ranks});
    case TimedAs::torch: return call + Seconds{kTorchCall};
    case TimedAs::alone: break;
  }
  return call;
}

MeasuredCollectives load_measured_collectives(const MeasurementIndex& index) {
  MeasuredCollectives result;
  for (const MeasuredFile* file : index.of_kind("collectives")) {
    std::size_t line = 0;
    for_each_row(*file, [&](const Json& row) {
      ++line;
      const std::string op = row.at("op").get<std::string>();
      const auto kind = collective_kind_from(op);
      if (!kind) return;
      MeasuredCollective one;
      one.published = !row.contains("world");
      const int ranks =
          one.published ? row.at("nodes").get<int>() * row.at("gpus_per_node").get<int>() : row.at("world").get<int>();
      one.series = row.value("series", fmt::format("h200-x{}", ranks));
      one.trust = row.value("trust", "");
      one.collective.kind = *kind;
      one.collective.type = dtype_from(row.value("dtype", "fp32")).value_or(DType::fp32);
      one.collective.ranks = ranks;
      one.collective.bytes = row.at("bytes").get<std::int64_t>();
      one.cluster = cluster_index(result.clusters, cluster_key(row, *file));
      one.placement = place(result.clusters[static_cast<std::size_t>(one.cluster)].cluster, ranks);
      // One call at a time where that was measured: many back to back wait for the host.
      const bool alone = row.contains("isolated_us") && row["isolated_us"].is_number();
      one.time = microseconds(alone ? row["isolated_us"].get<double>() : row.at("us").get<double>());
      one.timed = timed_as(row);
      one.file = file;
      one.line = line;
      one.shape = hash_of(fmt::format("{}|{}|{}|{}", one.series, op, ranks, one.collective.bytes));
      one.row = hash_of(row.dump());
      one.held_out = file->split == Split::held_out || (file->split == Split::by_shape && held_out_by_shape(one.shape));
      result.rows.push_back(std::move(one));
    });
  }
  return result;
}

}  // namespace ridgeline
