#include "sim/report/page/page_data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/json/launch_json.h"
#include "sim/report/json/prediction_json.h"
#include "sim/report/text/names.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

/// Microseconds to a nanosecond: short numbers for the page.
double page_us(Seconds t) { return std::round(t.value() * 1e9) / 1e3; }

ordered_json device_json(const Gpu& gpu) {
  ordered_json peaks = ordered_json::array();
  const auto add = [&](const char* name, double multiply_adds, FlopsPerSecond peak) {
    if (multiply_adds > 0) peaks.push_back({{"name", name}, {"flops_per_s", peak.value()}});
  };
  const MathRates& r = gpu.sm.rates;
  add("fp32 CUDA cores", r.fp32, gpu.peak(r.fp32));
  add("tf32 tensor cores", r.tensor_tf32, gpu.tensor_peak(r.tensor_tf32));
  add("fp16 tensor cores", r.tensor_fp16, gpu.tensor_peak(r.tensor_fp16));
  if (r.tensor_bf16 != r.tensor_fp16) add("bf16 tensor cores", r.tensor_bf16, gpu.tensor_peak(r.tensor_bf16));
  return {{"name", gpu.name},
          {"title", gpu.title},
          {"sm_count", gpu.sm.count},
          {"dram_bytes_per_s", gpu.dram.bandwidth.value()},
          {"l2_bytes_per_s", gpu.l2.read_bandwidth.value()},
          {"shared_bytes_per_s", gpu.sm.count * gpu.sm.shared_bandwidth.value() * gpu.clock.sustained.value()},
          {"peaks", std::move(peaks)}};
}

ordered_json groups_json(const StepDetail& detail) {
  std::vector<std::int64_t> counts(detail.kinds.size());
  std::vector<double> seconds(detail.kinds.size());
  const std::vector<std::int64_t> runs = runs_of_spans(detail);
  for (std::size_t i = 0; i < detail.spans.size(); ++i) {
    const LaunchSpan& span = detail.spans[i];
    counts[span.kind] += runs[i];
    seconds[span.kind] += static_cast<double>(runs[i]) * (span.end - span.start).value();
  }
  ordered_json out = ordered_json::array();
  for (std::size_t i = 0; i < detail.kinds.size(); ++i) {
    const KernelKind& kind = detail.kinds[i];
    out.push_back({{"name", kind.name},
                   {"shape", kind.shape},
                   {"modules", kind.modules},
                   {"class", kTimeClassNames[static_cast<std::size_t>(kind.launch.time_class)]},
                   {"limiter", name_of(kind.each.limited_by())},
                   {"type", name_of(kind.launch.type)},
                   {"on_tensor_cores", kind.launch.on_tensor_cores()},
                   {"count", counts[i]},
                   {"time_s", seconds[i]},
                   {"flops", kind.launch.flops},
                   {"dram_bytes", kind.each.dram_read_bytes + kind.each.dram_write_bytes},
                   {"l2_bytes", kind.each.l2_bytes},
                   {"loaded_bytes", loaded_bytes(kind)},
                   {"l2_hit_rate", kind.each.l2_hit_rate},
                   {"occupancy", kind.each.occupancy},
                   {"waves", kind.each.waves}});
  }
  return out;
}

ordered_json spans_json(const StepDetail& detail) {
  ordered_json out{{"phase_names", kPhaseNames}};
  out["stream_names"] = detail.streams;
  const auto column = [&](const char* key, auto value) {
    ordered_json::array_t values;
    values.reserve(detail.spans.size());
    for (const LaunchSpan& span : detail.spans) values.emplace_back(value(span));
    out[key] = std::move(values);
  };
  column("group", [](const LaunchSpan& span) { return span.kind; });
  column("phase", [](const LaunchSpan& span) { return static_cast<int>(span.phase); });
  column("layer", [](const LaunchSpan& span) { return span.layer; });
  column("stream", [](const LaunchSpan& span) { return static_cast<int>(span.stream); });
  column("issued_us", [](const LaunchSpan& span) { return page_us(span.issued); });
  column("start_us", [](const LaunchSpan& span) { return page_us(span.start); });
  column("duration_us", [](const LaunchSpan& span) { return page_us(span.end - span.start); });
  ordered_json copies{
      {"begin", ordered_json::array()}, {"end", ordered_json::array()}, {"shift_us", ordered_json::array()}};
  for (const SpanCopy& copy : detail.copies) {
    copies["begin"].push_back(copy.begin);
    copies["end"].push_back(copy.end);
    copies["shift_us"].push_back(page_us(copy.shift));
  }
  out["copies"] = std::move(copies);
  return out;
}

/// Of each stretch of equally many points the fullest.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, std::size_t most) {
  const std::size_t stretch = (points.size() + most - 1) / std::max<std::size_t>(1, most);
  if (stretch <= 1) return points;
  std::vector<MemoryPoint> out;
  for (std::size_t begin = 0; begin < points.size(); begin += stretch) {
    const auto from = points.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), begin + stretch));
    out.push_back(*std::max_element(from, to, [](const auto& a, const auto& b) { return a.allocated < b.allocated; }));
  }
  return out;
}

ordered_json memory_json(const StepDetail& detail, std::size_t most_points) {
  ordered_json at = ordered_json::array(), reserved = ordered_json::array(), bytes = ordered_json::array();
  const std::vector<MemoryPoint> points = thinned(detail.memory, most_points);
  for (const MemoryPoint& point : points) {
    at.push_back(page_us(point.at));
    reserved.push_back(point.reserved);
  }
  for (std::size_t category = 0; category < kCategories; ++category) {
    ordered_json row = ordered_json::array();
    for (const MemoryPoint& point : points) row.push_back(point.bytes[category]);
    bytes.push_back(std::move(row));
  }
  return {{"at_us", std::move(at)}, {"reserved", std::move(reserved)}, {"bytes", std::move(bytes)}};
}

}  // namespace

ordered_json page_pieces(const StepDetail& detail, const Gpu& gpu, const PagePieces& pieces, std::size_t most_points) {
  ordered_json out{{"device", device_json(gpu)}, {"classes", kTimeClassNames}, {"categories", kCategoryNames}};
  if (pieces.groups) out["groups"] = groups_json(detail);
  if (pieces.spans) out["spans"] = spans_json(detail);
  if (pieces.memory) out["memory"] = memory_json(detail, most_points);
  return out;
}

ordered_json page_part(const std::string& title, const Prediction& prediction, const StepDetail& detail, const Gpu& gpu,
                       std::size_t most_points) {
  ordered_json out{{"title", title}, {"prediction", prediction_json(prediction)}};
  out.update(page_pieces(detail, gpu, {}, most_points));
  return out;
}

}  // namespace ridgeline
