#include "sim/scenario/read_parallel.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;
template <typename Enum>
using Choice = std::pair<std::string_view, Enum>;

constexpr std::array<Choice<DataStrategy>, 6> kStrategies{{{"ddp", DataStrategy::ddp},
                                                           {"zero1", DataStrategy::zero1},
                                                           {"zero2", DataStrategy::zero2},
                                                           {"fsdp", DataStrategy::fsdp},
                                                           {"fsdp1", DataStrategy::fsdp1},
                                                           {"hsdp", DataStrategy::hsdp}}};
constexpr std::array<Choice<GradientCompression>, 3> kCompressions{
    {{"none", GradientCompression::none}, {"fp16", GradientCompression::fp16}, {"bf16", GradientCompression::bf16}}};
constexpr std::array<Choice<DType>, 3> kTypes{{{"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}}};
constexpr std::array<Choice<PipelineSchedule>, 6> kSchedules{
    {{"gpipe", PipelineSchedule::gpipe},
     {"1f1b", PipelineSchedule::one_forward_one_backward},
     {"interleaved", PipelineSchedule::interleaved},
     {"zb1p", PipelineSchedule::zb1p},
     {"zbv", PipelineSchedule::zbv},
     {"interleaved-zero-bubble", PipelineSchedule::interleaved_zero_bubble}}};
enum class Sharding : std::uint8_t { full, gradients };
constexpr std::array<Choice<Sharding>, 2> kShardings{{{"full", Sharding::full}, {"gradients", Sharding::gradients}}};
enum class Framework : std::uint8_t { torch };
constexpr std::array<Choice<Framework>, 1> kFrameworks{{{"torch", Framework::torch}}};

std::optional<DType> type_or_stored(const Value& value) {
  if (!value.exists() || value.is("as stored")) return std::nullopt;
  return value.choice<DType>(kTypes);
}

/// "model" or a number of blocks.
std::int64_t read_wrap(const Value& value) {
  if (value.is("model")) return 0;
  if (value.is("block")) return 1;
  return value.integer({1, 1 << 16}, 1);
}

/// true, false or a number of ranks.
ReshardAfterForward read_reshard(const Value& value, std::int64_t ranks) {
  if (!value.exists() || value.is("true")) return {0};
  if (value.is("false")) return {1};
  const std::int64_t to = value.integer({2, 1 << 16});
  if (ranks % to != 0)
    value.fail(fmt::format("{} does not divide the {} ranks that parameters are sharded over", to, ranks));
  return {to == ranks ? 0 : to};
}

/// Ways of splitting a network that have a key, but no model yet.
void refuse(const Mapping& mapping) {
  for (const std::string_view key : {"tensor", "context", "expert", "split"}) {
    const Value value = mapping[key];
    if (value.exists() && value.integer({1, 1 << 20}) != 1)
      value.fail(fmt::format("{}: only data parallel training and pipelines are modelled (data, strategy, pipeline)",
                             value.integer()));
  }
  if (mapping.has("pieces")) mapping["pieces"].fail("goes with split: the devices of one process");
  for (const std::string_view key : {"tensor_style", "sequence_parallel", "loss_parallel", "prepared_inputs"})
    if (mapping.has(key)) mapping[key].fail("goes with tensor parallel training, which is not modelled");
  (void)mapping["framework"].choice<Framework>(kFrameworks, Framework::torch);
}

std::int64_t read_data(const Mapping& mapping, const Cluster& cluster, std::int64_t stages) {
  const std::int64_t gpus = cluster.all_gpus(), data = mapping["data"].integer({1, 1 << 20}, gpus / stages);
  if (data * stages > gpus)
    mapping["data"].fail(fmt::format(
        "{} ranks{}, but {} has {} GPU{}", data, stages > 1 ? fmt::format(" of each of {} stages", stages) : "",
        cluster.title.empty() ? "the cluster" : cluster.title, gpus, gpus == 1 ? "" : "s"));
  return data;
}

void read_pipeline(const Mapping& mapping, const Cluster& cluster, ParallelDescription& result) {
  result.pipeline = mapping["pipeline"].integer({1, 1 << 16}, 1);
  const std::int64_t gpus = cluster.all_gpus();
  if (result.pipeline > gpus)
    mapping["pipeline"].fail(fmt::format("{} stages, but {} has {} GPU{}", result.pipeline,
                                         cluster.title.empty() ? "the cluster" : cluster.title, gpus,
                                         gpus == 1 ? "" : "s"));
  if (result.pipeline == 1) {
    for (const std::string_view key : {"schedule", "virtual_stages"})
      if (mapping.has(key)) mapping[key].fail("goes with a pipeline: of two stages or more");
    return;
  }
  result.schedule =
      mapping["schedule"].choice<PipelineSchedule>(kSchedules, PipelineSchedule::one_forward_one_backward);
  const bool loops =
      result.schedule == PipelineSchedule::interleaved || result.schedule == PipelineSchedule::interleaved_zero_bubble;
  const bool folds = result.schedule == PipelineSchedule::zbv;
  result.virtual_stages = mapping["virtual_stages"].integer({1, 1 << 10}, loops || folds ? 2 : 1);
  if (!loops && result.virtual_stages != (folds ? 2 : 1))
    mapping["virtual_stages"].fail(
        fmt::format("{}: this schedule has {} a rank; interleaved and interleaved-zero-bubble have any number",
                    result.virtual_stages, folds ? "two stages" : "one stage"));
}

}  // namespace

ParallelDescription read_parallel(const Value& section, const Cluster& cluster) {
  ParallelDescription result;
  if (!section.exists()) {
    result.data = cluster.all_gpus();
    return result;
  }
  const Mapping mapping(section, {"data",
                                  "strategy",
                                  "framework",
                                  "tensor",
                                  "pipeline",
                                  "schedule",
                                  "virtual_stages",
                                  "context",
                                  "expert",
                                  "bucket_cap",
                                  "gradient_as_bucket_view",
                                  "static_graph",
                                  "find_unused_parameters",
                                  "compression",
                                  "no_sync",
                                  "parameters_as_bucket_view",
                                  "wrap",
                                  "reshard_after_forward",
                                  "parameter_type",
                                  "reduce_type",
                                  "offload",
                                  "sharding",
                                  "replicate",
                                  "tensor_style",
                                  "sequence_parallel",
                                  "loss_parallel",
                                  "prepared_inputs",
                                  "split",
                                  "pieces"});
  refuse(mapping);
  read_pipeline(mapping, cluster, result);
  result.data = read_data(mapping, cluster, result.pipeline);
  result.strategy = mapping["strategy"].choice<DataStrategy>(kStrategies, DataStrategy::ddp);
  if (mapping.has("bucket_cap"))
    result.bucket_cap =
        static_cast<std::int64_t>(mapping["bucket_cap"].quantity<Bytes>(config::Range::positive()).value());
  result.gradient_as_bucket_view = mapping["gradient_as_bucket_view"].boolean(false);
  result.static_graph = mapping["static_graph"].boolean(false);
  result.find_unused_parameters = mapping["find_unused_parameters"].boolean(false);
  result.compression = mapping["compression"].choice<GradientCompression>(kCompressions, GradientCompression::none);
  result.no_sync = mapping["no_sync"].boolean(false);
  result.parameters_as_bucket_view = mapping["parameters_as_bucket_view"].boolean(false);
  result.wrap = read_wrap(mapping["wrap"]);
  result.parameter_type = type_or_stored(mapping["parameter_type"]);
  result.reduce_type = type_or_stored(mapping["reduce_type"]);
  if (mapping["offload"].boolean(false)) mapping["offload"].fail("shards in the host's memory are not modelled");
  const bool hybrid = result.strategy == DataStrategy::hsdp;
  result.replicate = mapping["replicate"].integer({1, 1 << 20}, hybrid ? cluster.nodes : 1);
  if (!hybrid && result.replicate != 1) mapping["replicate"].fail("goes with strategy: hsdp");
  if (result.data % result.replicate != 0)
    mapping["replicate"].fail(
        fmt::format("{} does not divide the {} data parallel ranks", result.replicate, result.data));
  result.reshard_after_forward = read_reshard(mapping["reshard_after_forward"], result.data / result.replicate);
  if (mapping["sharding"].choice<Sharding>(kShardings, Sharding::full) == Sharding::gradients)
    result.reshard_after_forward = {1};
  return result;
}

}  // namespace ridgeline
