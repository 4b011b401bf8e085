#include "sim/trace/profiler/recorded_collectives.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/profiler/profiler_arguments.h"

namespace ridgeline::trace {
namespace {

std::optional<CollectiveKind> kind_of(std::string name) {
  std::erase_if(name, [](char c) { return c == '_' || c == ' '; });
  constexpr std::pair<std::string_view, CollectiveKind> kNames[] = {{"allreduce", CollectiveKind::all_reduce},
                                                                    {"allgather", CollectiveKind::all_gather},
                                                                    {"reducescatter", CollectiveKind::reduce_scatter},
                                                                    {"alltoall", CollectiveKind::all_to_all},
                                                                    {"broadcast", CollectiveKind::broadcast},
                                                                    {"reduce", CollectiveKind::reduce},
                                                                    {"sendrecv", CollectiveKind::send_recv},
                                                                    {"send", CollectiveKind::send_recv},
                                                                    {"recv", CollectiveKind::send_recv}};
  for (const auto& [start, kind] : kNames)
    if (name.starts_with(start)) return kind;
  return std::nullopt;
}

std::optional<DType> type_of(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"Float", DType::fp32}, {"fp32", DType::fp32},   {"BFloat16", DType::bf16}, {"bf16", DType::bf16},
      {"Half", DType::fp16},  {"fp16", DType::fp16},   {"Double", DType::fp64},   {"fp64", DType::fp64},
      {"Long", DType::int64}, {"int64", DType::int64}, {"Int", DType::int32},     {"int32", DType::int32},
      {"Byte", DType::uint8}, {"uint8", DType::uint8}, {"Char", DType::uint8},    {"Bool", DType::boolean}};
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  return std::nullopt;
}

/// The word for what the ranks of a group share, as its description says: our own timelines', Megatron-LM's
/// ("TENSOR_MODEL_PARALLEL_ GROUP"), a device mesh's ("mesh_tp"). Data where it says nothing.
GroupKind group_of(std::string description) {
  std::transform(description.begin(), description.end(), description.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::uint8_t g = 0; g <= static_cast<std::uint8_t>(GroupKind::expert_data); ++g)
    if (description == name_of(static_cast<GroupKind>(g))) return static_cast<GroupKind>(g);
  if (description.find("data") != description.npos) return GroupKind::data;
  constexpr std::pair<std::string_view, GroupKind> kWords[] = {
      {"tensor", GroupKind::tensor},     {"mesh_tp", GroupKind::tensor},  {"context", GroupKind::context},
      {"mesh_cp", GroupKind::context},   {"expert", GroupKind::expert},   {"mesh_ep", GroupKind::expert},
      {"pipeline", GroupKind::pipeline}, {"mesh_pp", GroupKind::pipeline}};
  for (const auto& [word, group] : kWords)
    if (description.find(word) != description.npos) return group;
  return GroupKind::data;
}

/// A reduction through shared memory, by the operator that launched it: all ranks of the job take part.
std::optional<Collective> shared_memory_reduction(const ProfilerEvents& events, std::size_t op) {
  if (op == kNoOperator || events.world < 2) return std::nullopt;
  if (events.names[events.operators[op].name].find("all_reduce") == std::string::npos) return std::nullopt;
  Defects counted;
  const auto arguments = profiler_arguments(events.operators[op].arguments, DType::fp32, "", counted);
  const auto* tensor = arguments.empty() ? nullptr : std::get_if<AtenTensor>(&arguments.front());
  if (tensor == nullptr || tensor->elements() < 1) return std::nullopt;
  return Collective{CollectiveKind::all_reduce, GroupKind::tensor, tensor->type, events.world, tensor->bytes()};
}

/// The innermost operator around the launch of each.
std::map<std::size_t, std::size_t> operators_of(const ProfilerEvents& events, const std::vector<std::size_t>& gpu) {
  const std::vector<std::size_t> around = operators_around(events.runtime, events.operators);
  std::map<std::int64_t, std::size_t> by_correlation;
  for (std::size_t i = 0; i < events.runtime.size(); ++i)
    if (events.runtime[i].correlation >= 0) by_correlation.emplace(events.runtime[i].correlation, around[i]);
  std::map<std::size_t, std::size_t> found;
  for (const std::size_t g : gpu) {
    const auto call = by_correlation.find(events.gpu[g].correlation);
    if (call != by_correlation.end()) found[g] = call->second;
  }
  return found;
}

}  // namespace

std::optional<Collective> collective_of(const GpuEvent::Message& message) {
  const std::optional<CollectiveKind> kind = kind_of(message.name);
  const std::optional<DType> type = type_of(message.type);
  if (!kind || !type || message.ranks < 2) return std::nullopt;
  const std::int64_t most = *kind == CollectiveKind::all_gather  ? message.received
                            : *kind == CollectiveKind::send_recv ? std::max(message.sent, message.received)
                                                                 : message.sent;
  if (most <= 0) return std::nullopt;
  const std::int64_t ranks = *kind == CollectiveKind::send_recv ? 2 : message.ranks;
  return Collective{*kind, group_of(message.group), *type, ranks, most * bytes_of(*type)};
}

std::map<std::size_t, std::optional<Collective>> collective_kernels(const ProfilerEvents& events) {
  std::map<std::size_t, std::optional<Collective>> found;
  std::vector<std::size_t> shared;
  for (std::size_t g = 0; g < events.gpu.size(); ++g) {
    const std::string& name = events.names[events.gpu[g].name];
    if (!is_collective_kernel(name)) continue;
    found[g];
    if (name.find("nccl") == std::string::npos) shared.push_back(g);
  }
  for (const auto& [g, op] : operators_of(events, shared)) found[g] = shared_memory_reduction(events, op);
  for (auto& [g, op] : found)
    if (auto told = collective_of(events.gpu[g].message)) op = told;
  return found;
}

}  // namespace ridgeline::trace
