#include "sim/report/text/collective_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/input/json_depth.h"
#include "sim/network/collective_case.h"
#include "sim/network/collective_time.h"
#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kTimedAs = "nccl-tests: one of many calls back to back";

double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

/// Times of nccl-tests, of the kernel and of PyTorch's call; the range is that of the first.
ordered_json predicted_json(const CollectiveCase& one, const CollectiveTime& time, Seconds host) {
  const double loop = in_microseconds(time.loop), scale = loop / in_microseconds(time.time);
  ordered_json out;
  out["time_us"] = six_digits(loop);
  out["low_us"] = six_digits(in_microseconds(time.low) * scale);
  out["high_us"] = six_digits(in_microseconds(time.high) * scale);
  out["algorithm"] = name_of(time.algorithm);
  out["protocol"] = name_of(time.protocol);
  out["channels"] = time.channels;
  out["bus_gb_per_s"] = six_digits(time.bus.value() * 1e-9);
  out["timed_as"] = kTimedAs;
  out["kernel_us"] = six_digits(in_microseconds(time.time));
  out["pytorch_call_us"] = six_digits(in_microseconds(time.call + host));
  out["threads"] = time.threads;
  out["wire_bytes"] = static_cast<std::int64_t>(time.wire.value());
  out["dram_bytes"] = static_cast<std::int64_t>(time.dram.value());
  out["limiter"] = name_of(time.limiter);
  if (time.algorithm != NcclAlgorithm::none) out["kernel"] = nccl_kernel_name(one.collective, time);
  out["validated"] = time.validated;
  if (!time.why_not.empty()) out["why_not"] = time.why_not;
  return out;
}

std::string size_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size >= kGiB) return fmt::format("{:.4g} GiB", size / kGiB);
  if (size >= kMiB) return fmt::format("{:.4g} MiB", size / kMiB);
  if (size >= kKiB) return fmt::format("{:.4g} KiB", size / kKiB);
  return fmt::format("{} B", bytes);
}

constexpr double kMilliseconds = 1e3;  ///< microseconds from which a time is told in milliseconds

std::string time_text(double us) {
  return us >= kMilliseconds ? fmt::format("{:.4g} ms", us * 1e-3) : fmt::format("{:.1f} us", us);
}

/// What a person reads "limited by".
std::string_view limit_text(CollectiveLimiter limiter) {
  switch (limiter) {
    case CollectiveLimiter::latency: return "latency";
    case CollectiveLimiter::links: return "NVLink";
    case CollectiveLimiter::pcie: return "PCIe";
    case CollectiveLimiter::host: return "host";
    case CollectiveLimiter::network: return "NICs";
    case CollectiveLimiter::gpu: break;
  }
  return "itself";
}

constexpr const char* kRow = "{:<14} {:>9} {:>8} {:>10} {:>14} {:>6} {:<16} {:>3} {}";

/// At most 100 columns; what was not compared stands below.
std::string row_text(const CollectiveCase& one, const CollectiveTime& time) {
  const double loop = in_microseconds(time.loop), scale = loop / in_microseconds(time.time);
  const double unit = loop >= kMilliseconds ? 1e-3 : 1.0;  // as time_text
  const std::string range = fmt::format("{:.3g} to {:.3g}", in_microseconds(time.low) * scale * unit,
                                        in_microseconds(time.high) * scale * unit);
  const std::string ranks = one.placement.nodes == 1
                                ? fmt::format("{}", one.placement.ranks)
                                : fmt::format("{} x {}", one.placement.nodes, one.placement.ranks_a_node);
  const bool runs = time.algorithm != NcclAlgorithm::none;
  std::string row = fmt::format(kRow, name_of(one.collective.kind), size_text(one.collective.bytes), ranks,
                                time_text(loop), range, fmt::format("{:.1f}", time.bus.value() * 1e-9),
                                runs ? fmt::format("{} {}", name_of(time.algorithm), name_of(time.protocol)) : "none",
                                time.channels, limit_text(time.limiter));
  if (!time.validated) row += fmt::format("\n    estimated: {}", time.why_not);
  return row;
}

}  // namespace

CollectiveLines::CollectiveLines(Cluster cluster, Gpu gpu, Seconds host_call, bool table)
    : cluster_(std::move(cluster)), gpu_(std::move(gpu)), host_call_(host_call), table_(table) {}

std::string CollectiveLines::heading() const {
  if (!table_) return "";
  return fmt::format("{}: {}\nTimes are those of {}\n", cluster_.name, cluster_.title, kTimedAs) +
         fmt::format(kRow, "collective", "bytes", "ranks", "time", "nine in ten", "bus", "algorithm", "SMs",
                     "limited by") +
         "\n" + fmt::format(kRow, "", "", "", "", "", "GB/s", "", "", "") + "\n";
}

CollectiveLines::Answer CollectiveLines::answer(std::string_view given) const {
  const std::string text(given);
  ordered_json line;
  Answer answer;
  try {
    check_json_depth(text);
    line = ordered_json::parse(text);
    const CollectiveCase one = collective_case_from(nlohmann::json(line), cluster_);
    const CollectiveTime time = collective_time(one.cluster, gpu_, one.collective, one.placement);
    if (table_) return {row_text(one, time), ""};
    line["predicted"] = predicted_json(one, time, host_call_);
  } catch (const ordered_json::exception& e) {
    answer.mistake = fmt::format("not a JSON object: {}; a line is {{\"op\":\"all_reduce\",\"bytes\":1000000000}}",
                                 json_mistake(e.what()));
  } catch (const UserError& e) {
    answer.mistake = e.what();
  }
  if (!answer.mistake.empty()) {
    if (!line.is_object()) line = ordered_json{{"line", text.substr(0, 200)}};
    line["error"] = answer.mistake;
  }
  answer.text = table_ ? "" : line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return answer;
}

std::string cluster_list() {
  constexpr const char* kColumns = "{:<18} {:>5} {:>4} {:<16} {:<9} {:>6} {:>15}\n";
  std::string out = fmt::format(kColumns, "cluster", "nodes", "GPUs", "GPU", "link", "GB/s", "NICs");
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    const bool linked = cluster.interconnect != Interconnect::pcie && cluster.interconnect != Interconnect::none;
    const double rate = linked ? cluster.links.rate.value() * cluster.links.count : cluster.pcie.rate.value();
    const std::string nics = cluster.nics.count == 0 ? "none"
                                                     : fmt::format("{} x {:.0f} Gbit/s", cluster.nics.count,
                                                                   cluster.nics.rate.value() * 8e-9);
    constexpr std::string_view kVendor = "nvidia-";
    const std::string gpu = cluster.gpu_name.substr(cluster.gpu_name.starts_with(kVendor) ? kVendor.size() : 0);
    out += fmt::format(kColumns, name, cluster.nodes, cluster.gpus, gpu, name_of(cluster.interconnect),
                       fmt::format("{:.4g}", rate * 1e-9), nics);
  }
  return out;
}

}  // namespace ridgeline
