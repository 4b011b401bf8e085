#include "sim/network/collective_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/units/meant_name.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                            CollectiveKind::all_to_all, CollectiveKind::broadcast,  CollectiveKind::reduce,
                            CollectiveKind::send_recv};
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50, kMostNodesOfACase = 1 << 20;

[[noreturn]] void fail(const std::string& message) { throw CollectiveCaseError(message); }

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kKinds) names.emplace_back(name_of(kind));
  return names;
}

CollectiveKind kind_of(const Json& line) {
  if (!line.contains("op") || !line["op"].is_string())
    fail(fmt::format("op: missing, expected one of {}", fmt::join(kind_names(), ", ")));
  const std::string name = line["op"].get<std::string>();
  if (const auto kind = collective_kind_from(name)) return *kind;
  fail(fmt::format("op: unknown collective '{}'; {}", name, expected_names(name, kind_names())));
}

std::int64_t whole_number(const Json& line, const char* key, std::int64_t low, std::int64_t high,
                          std::optional<std::int64_t> fallback) {
  if (!line.contains(key)) {
    if (fallback) return *fallback;
    fail(fmt::format("{}: missing, expected a whole number from {} to {}", key, low, high));
  }
  const Json& value = line[key];
  const bool is_whole =
      value.is_number_integer() || (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
  if (!is_whole || value.get<double>() < static_cast<double>(low) || value.get<double>() > static_cast<double>(high))
    fail(fmt::format("{}: expected a whole number from {} to {}, got {}", key, low, high, value.dump()));
  return value.get<std::int64_t>();
}

DType type_of(const Json& line) {
  if (!line.contains("dtype")) return DType::fp32;
  const auto type = line["dtype"].is_string() ? dtype_from(line["dtype"].get<std::string>()) : std::nullopt;
  if (!type)
    fail(fmt::format("dtype: expected bf16, fp16, fp32 or another type of tensors, got {}", line["dtype"].dump()));
  return *type;
}

}  // namespace

std::optional<CollectiveKind> collective_kind_from(std::string_view name) {
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](CollectiveKind kind) { return name_of(kind) == name; });
  if (found == kKinds.end()) return std::nullopt;
  return *found;
}

CollectiveCase collective_case_from(const Json& line, const Cluster& cluster) {
  if (!line.is_object()) fail("expected a JSON object");
  static const std::vector<std::string> kKeys{"op", "bytes", "gpus", "nodes", "dtype", "id"};
  for (const auto& [key, value] : line.items())
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      fail(fmt::format("{}: unknown key; {}", key, expected_names(key, kKeys)));
  CollectiveCase result;
  result.cluster = cluster;
  result.collective.kind = kind_of(line);
  result.collective.bytes = whole_number(line, "bytes", 0, kMostBytes, std::nullopt);
  result.collective.type = type_of(line);
  const std::int64_t nodes = whole_number(line, "nodes", 1, kMostNodesOfACase, cluster.nodes);
  std::int64_t gpus = whole_number(line, "gpus", 1, kMostNodesOfACase * cluster.gpus, cluster.gpus);
  if (gpus > cluster.gpus && gpus % nodes == 0 && gpus / nodes <= cluster.gpus) gpus /= nodes;
  if (gpus > cluster.gpus) fail(fmt::format("gpus: {}, and a node of {} has {}", gpus, cluster.name, cluster.gpus));
  if (nodes > 1 && cluster.nics.count == 0)
    fail(fmt::format("nodes: {}, and {} has no NICs (nics.count)", nodes, cluster.name));
  result.cluster.nodes = static_cast<int>(std::max<std::int64_t>(nodes, cluster.nodes));
  result.collective.ranks = static_cast<int>(nodes * gpus);
  result.placement.ranks = static_cast<int>(result.collective.ranks);
  result.placement.ranks_a_node = static_cast<int>(gpus);
  result.placement.nodes = static_cast<int>(nodes);
  return result;
}

}  // namespace ridgeline
