#include "sim/study/validation/measured_overlaps.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_case.h"
#include "sim/network/load_cluster.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;

constexpr double kDisturbed = 2.0;  // a collective alone that took so many times what the law says was not alone

/// Thread blocks of the libraries' kernels and bytes of their operands, as the shapes say.
KernelBesides kernel_named(const std::string& name) {
  static const std::map<std::string, KernelBesides> known{
      {"gemm_8192", {Seconds{}, 2048, 1, Bytes{8e8}, 0}},
      {"gemm_16384x3072x768", {Seconds{}, 1536, 1, Bytes{2.3e8}, 0}},
      {"gemm_fp32_4096", {Seconds{}, 1024, 2, Bytes{2e8}, 0}},
      {"add_512MB", {Seconds{}, 1e6, 8, Bytes{1.61e9}, 1}},
      {"attention_16x12x1024x64", {Seconds{}, 1536, 1, Bytes{1e8}, 0}},
      {"layer_norm_16384x4096", {Seconds{}, 16384, 8, Bytes{2.68e8}, 1}},
      {"add_8MB", {Seconds{}, 4096, 8, Bytes{0}, 1}}};
  const auto found = known.find(name);
  if (found == known.end()) throw UserError(fmt::format("overlaps: nothing is known of kernel \"{}\"", name));
  return found->second;
}

}  // namespace

MeasuredOverlaps load_measured_overlaps(const MeasurementIndex& index) {
  MeasuredOverlaps result;
  std::map<int, std::pair<Cluster, int>> clusters;  // by GPUs
  for (const MeasuredFile* file : index.of_kind("overlaps"))
    for_each_row(*file, [&](const json& row) {
      const int world = row.at("world");
      auto found = clusters.find(world);
      if (found == clusters.end()) {
        Cluster cluster = load_cluster(fmt::format("h200-x{}", world));
        result.gpus.push_back(load_gpu(cluster.gpu_name));
        found = clusters.emplace(world, std::pair{std::move(cluster), static_cast<int>(result.gpus.size()) - 1}).first;
      }
      const auto& [cluster, gpu] = found->second;
      const std::string op = row.at("op"), compute = row.at("compute");
      MeasuredOverlap one{.gpu = gpu, .beside = {}};
      one.shape = hash_of(op + compute + row.at("bytes").dump() + std::to_string(world));
      one.held_out = file->split == Split::held_out || (file->split == Split::by_shape && held_out_by_shape(one.shape));
      one.name = fmt::format("{} beside {} of {} bytes on {}", compute, op, row.at("bytes").dump(), world);
      const Collective collective{
          .kind = *collective_kind_from(op), .ranks = cluster.gpus, .bytes = row.at("bytes").get<std::int64_t>()};
      one.collective = collective_time(cluster, result.gpus[static_cast<std::size_t>(gpu)], collective,
                                       place(cluster, cluster.gpus));
      const Seconds alone = microseconds(row.at("collective_us").get<double>());
      if (alone > kDisturbed * one.collective.call) {
        ++result.disturbed;
        result.disturbed_held_out += one.held_out ? 1 : 0;
        return;
      }
      one.collective.time = alone;
      one.kernel = kernel_named(compute);
      one.kernel.time = microseconds(row.at("compute_us").get<double>());
      for (const bool of_collective : {false, true}) {
        if (!row.at("covered").at(of_collective ? 1 : 0).get<bool>()) continue;
        one.of_collective = of_collective;
        one.beside = microseconds(row.at(of_collective ? "collective_beside_us" : "compute_beside_us").get<double>());
        one.row = hash_of(of_collective ? "collective" : "kernel", hash_of(row.dump()));
        result.rows.push_back(one);
      }
    });
  return result;
}

}  // namespace ridgeline
