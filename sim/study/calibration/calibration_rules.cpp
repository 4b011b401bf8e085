// One rule a number: which points of which curve, and how.
//
// Slopes of time against bytes leave launch and latency out. The unit of `value` is that of the file.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/study/calibration/calibration.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Points = std::vector<const ProbePoint*>;

Points points_of(const ProbeResult& probe, std::string_view curve, double from = 0.0, double to = 1e300,
                 std::string_view condition = "bytes") {
  Points result;
  for (const ProbePoint& p : probe.find(curve)->points)
    if (const double x = p[condition]; x >= from && x <= to) result.push_back(&p);
  return result;
}

const Points& at_least(const Points& points, std::size_t count) {
  if (points.size() < count) throw UserError("too few points in the range it needs");
  return points;
}

double most_spread(const Points& points) {
  double spread = 0.0;
  for (const ProbePoint* p : points) spread = std::max(spread, p->spread);
  return spread;
}

/// x a second between the first and the last of the points.
double slope(const Points& points, std::string_view condition = "bytes") {
  const ProbePoint &first = *at_least(points, 2).front(), &last = *points.back();
  const double seconds = last.seconds - first.seconds;
  if (seconds <= 0.0) throw UserError("time does not grow with size");
  return (last[condition] - first[condition]) / seconds;
}

double median_of(const Points& points, double ProbePoint::*what) {
  std::vector<double> values;
  for (const ProbePoint* p : at_least(points, 1)) values.push_back(p->*what);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The last octave of sizes: streams that no cache helps.
Points largest(const ProbeResult& probe, std::string_view curve) {
  const auto& points = probe.find(curve)->points;
  if (points.empty()) throw UserError("the curve is empty");
  const double most = points.back()["bytes"];
  return points_of(probe, curve, 0.45 * most);
}

Extracted share_of_bandwidth(const ProbeResult& probe, const Gpu& gpu, std::string_view curve) {
  const Points points = largest(probe, curve);
  return {slope(points) / gpu.dram.bandwidth.value(), most_spread(points)};
}

/// What copies lose against reads and writes that do not meet: 1/eff = ½/read + ½/write + turnaround.
Extracted turnaround(const ProbeResult& probe, const Gpu& gpu) {
  const Points points = largest(probe, "dram_copy");
  const double copy = 2.0 * slope(points) / gpu.dram.bandwidth.value();
  const double lost = 1.0 / copy - 0.5 / gpu.dram.read_efficiency - 0.5 / gpu.dram.write_efficiency;
  return {std::max(0.0, lost), most_spread(points)};
}

/// Arrays of up to half the L2, read again and again.
Points resident(const ProbeResult& probe, const Gpu& gpu, std::string_view curve) {
  return points_of(probe, curve, 0.0, 0.51 * gpu.l2.capacity.value());
}

Extracted l2_read(const ProbeResult& probe, const Gpu& gpu) {
  const Points points = resident(probe, gpu, "l2_reread_clean");
  return {slope(points) * 1e-12, most_spread(points)};
}

/// Written, then read; less the reading.
Extracted l2_write(const ProbeResult& probe, const Gpu& gpu) {
  const Points both = resident(probe, gpu, "l2_reread_dirty"), read = resident(probe, gpu, "l2_reread_clean");
  const double seconds_a_byte = 1.0 / slope(both) - 1.0 / slope(read);
  if (seconds_a_byte <= 0.0) throw UserError("writing costs nothing");
  return {1e-12 / seconds_a_byte, std::max(most_spread(both), most_spread(read))};
}

/// Where rereads of one array begin and end to miss, as shares of the capacity: a line through the hit shares between
/// 0.1 and 0.9, each from the time between that of hits and that of misses.
struct Ramp {
  double full, none, spread;
};
Ramp clean_ramp(const ProbeResult& probe, const Gpu& gpu) {
  const double capacity = gpu.l2.capacity.value();
  const Points all = points_of(probe, "l2_reread_clean");
  const Points hits = at_least(resident(probe, gpu, "l2_reread_clean"), 2);
  const Points misses = at_least(points_of(probe, "l2_reread_clean", 1.35 * capacity), 2);
  const double hit_slope = 1.0 / slope(hits), miss_slope = 1.0 / slope(misses);
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, spread = 0;
  for (const ProbePoint* p : all) {
    const double bytes = (*p)["bytes"];
    const double hit = hits.back()->seconds + (bytes - (*hits.back())["bytes"]) * hit_slope;
    const double miss = misses.front()->seconds + (bytes - (*misses.front())["bytes"]) * miss_slope;
    const double share = (miss - p->seconds) / (miss - hit);
    if (miss <= hit || share < 0.1 || share > 0.9) continue;
    const double at = bytes / capacity;
    n += 1, x += at, y += share, xx += at * at, xy += at * share;
    spread = std::max(spread, p->spread);
  }
  const double fall = n >= 2 ? (n * xy - x * y) / (n * xx - x * x) : 0.0;
  if (fall >= 0.0) throw UserError("no ramp between hits and misses");
  const double middle_x = x / n, middle_y = y / n;
  return {middle_x + (1.0 - middle_y) / fall, middle_x - middle_y / fall, spread};
}

constexpr double kRampSpread = 0.05;

Extracted latency_cycles(const ProbeResult& probe, double from, double to) {
  const Points points = points_of(probe, "global_latency", from, to);
  return {median_of(points, &ProbePoint::value), most_spread(points)};
}

const ProbePoint& best(const ProbeResult& probe, std::string_view curve) {
  const auto& points = probe.find(curve)->points;
  if (points.empty()) throw UserError("the curve is empty");
  return *std::max_element(points.begin(), points.end(),
                           [](const ProbePoint& a, const ProbePoint& b) { return a.value < b.value; });
}

double stated(const std::map<std::string, double>& numbers, const char* key) {
  const auto found = numbers.find(key);
  if (found == numbers.end()) throw UserError(std::string("\"") + key + "\" is missing");
  return found->second;
}

Extracted host_link(const ProbeResult& probe, const Gpu&) {
  const ProbePoint* chosen = nullptr;
  for (const ProbePoint& p : probe.find("host_copy")->points)
    if (p["pinned"] == 1.0 && p["to_device"] == 1.0 && (!chosen || p["bytes"] > (*chosen)["bytes"])) chosen = &p;
  if (!chosen) throw UserError("no pinned copy to the device");
  return {chosen->value * 1e-9, chosen->spread};
}

/// Additions to as many addresses as there are threads, or to one.
Extracted additions(const ProbeResult& probe, bool many) {
  const ProbePoint* chosen = nullptr;
  for (const ProbePoint& p : probe.find("atomic_add")->points)
    if (many ? !chosen || p["addresses"] > (*chosen)["addresses"] : p["addresses"] == 1.0) chosen = &p;
  if (!chosen) throw UserError("no additions to one address");
  return {chosen->value, chosen->spread};
}

Extracted sustained_clock(const ProbeResult& probe, const Gpu&) {
  for (const ProbePoint& p : probe.find("sustained_clock")->points)
    if (p["load"] == 0.0) return {p.value * 1e-6, p.spread};
  throw UserError("no load of the CUDA cores");
}

Extracted blocks_per_second(const ProbeResult& probe, const Gpu&) {
  const Points all = points_of(probe, "graph_period", 0.0, 1e300, "blocks");
  const Points last(at_least(all, 2).end() - 2, all.end());
  return {slope(last, "blocks"), most_spread(last)};
}

using Rules = std::vector<CalibrationRule>;

Rules rules_of_sm_and_board() {
  return {
      {"sm.shared_bandwidth",
       "B/cycle",
       "one block an SM reading shared memory, 16 bytes a thread",
       {"shared_read"},
       0.10,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{best(p, "shared_read").value, best(p, "shared_read").spread};
       }},
      {"sm.l1_bandwidth",
       "B/cycle",
       "best footprint of one block an SM reading its own data again",
       {"l1_read"},
       0.10,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{best(p, "l1_read").value, best(p, "l1_read").spread};
       }},
      {"sm.shared_latency",
       "cycles",
       "dependent loads",
       {"shared_latency"},
       0.05,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{best(p, "shared_latency").value, best(p, "shared_latency").spread};
       }},
      {"sm.l1_latency",
       "cycles",
       "dependent loads over at most a quarter of the L1",
       {"global_latency"},
       0.05,
       [](const ProbeResult& p, const Gpu& gpu) {
         return latency_cycles(p, 0.0, 0.26 * gpu.sm.l1_and_shared.value());
       }},
      {"clock.sustained",
       "MHz",
       "clock of the SMs in the second half of a load of fp32 multiply-adds",
       {"sustained_clock"},
       0.05,
       sustained_clock},
      {"power.limit",
       "W",
       "the board's limit as the driver states it",
       {},
       0.0,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{stated(p.device, "power_limit_watts"), 0.0};
       }},
  };
}

Rules rules_of_l2() {
  return {
      {"l2.read_bandwidth", "TB/s", "slope of rereads of up to half the L2", {"l2_reread_clean"}, 0.10, l2_read},
      {"l2.write_bandwidth",
       "TB/s",
       "slope of rewrites of up to half the L2",
       {"l2_reread_clean", "l2_reread_dirty"},
       0.10,
       l2_write},
      {"l2.shared_read_bandwidth",
       "TB/s",
       "best footprint that all blocks read, each beginning elsewhere",
       {"l2_read"},
       0.10,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{best(p, "l2_read").value * 1e-12, best(p, "l2_read").spread};
       }},
      {"l2.atomic_rate",
       "",
       "32-bit additions a second of all threads, each to an address of its own",
       {"atomic_add"},
       0.10,
       [](const ProbeResult& p, const Gpu&) { return additions(p, true); }},
      {"l2.atomic_address_rate",
       "",
       "32-bit additions a second of all threads to one address",
       {"atomic_add"},
       0.10,
       [](const ProbeResult& p, const Gpu&) { return additions(p, false); }},
      {"l2.latency",
       "cycles",
       "dependent loads over twice the L1 to a quarter of the L2",
       {"global_latency"},
       0.05,
       [](const ProbeResult& p, const Gpu& gpu) {
         return latency_cycles(p, 2.0 * gpu.sm.l1_and_shared.value(), 0.25 * gpu.l2.capacity.value());
       }},
      {"l2.resident_full",
       "",
       "where clean rereads begin to miss, less what mixed streams lose earlier",
       {"l2_reread_clean"},
       kRampSpread,
       [](const ProbeResult& p, const Gpu& gpu) {
         const Ramp r = clean_ramp(p, gpu);
         return Extracted{kMixedFull * r.full, r.spread};
       }},
      {"l2.resident_none",
       "",
       "where clean rereads miss throughout, less what mixed streams lose earlier",
       {"l2_reread_clean"},
       kRampSpread,
       [](const ProbeResult& p, const Gpu& gpu) {
         const Ramp r = clean_ramp(p, gpu);
         return Extracted{kMixedNone * r.none, r.spread};
       }},
  };
}

Rules rules_of_dram_and_launch() {
  return {
      {"dram.capacity",
       "MiB",
       "memory as the driver states it",
       {},
       0.0,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{stated(p.device, "memory_bytes") / kMiB, 0.0};
       }},
      {"dram.read_efficiency",
       "",
       "slope of reads over the last octave of sizes",
       {"dram_read"},
       0.05,
       [](const ProbeResult& p, const Gpu& gpu) { return share_of_bandwidth(p, gpu, "dram_read"); }},
      {"dram.write_efficiency",
       "",
       "slope of writes over the last octave of sizes",
       {"dram_write"},
       0.05,
       [](const ProbeResult& p, const Gpu& gpu) { return share_of_bandwidth(p, gpu, "dram_write"); }},
      {"dram.turnaround",
       "",
       "slope of copies over the last octave of sizes, against reads and writes",
       {"dram_copy", "dram_read", "dram_write"},
       0.05,
       turnaround},
      {"dram.latency",
       "ns",
       "dependent loads over at least twice the L2",
       {"global_latency_time"},
       0.05,
       [](const ProbeResult& p, const Gpu& gpu) {
         const Points points = points_of(p, "global_latency_time", 2.0 * gpu.l2.capacity.value());
         return Extracted{median_of(points, &ProbePoint::value), most_spread(points)};
       }},
      {"host_link.bandwidth", "GB/s", "largest pinned copy to the device", {"host_copy"}, 0.20, host_link},
      {"launch.graph_period",
       "us",
       "empty kernels of one block in a graph",
       {"graph_period"},
       0.10,
       [](const ProbeResult& p, const Gpu&) {
         const Points points = points_of(p, "graph_period", 0.0, 1.0, "blocks");
         return Extracted{median_of(points, &ProbePoint::value), most_spread(points)};
       }},
      {"launch.blocks_per_second",
       "",
       "slope of empty kernels in a graph by thread blocks",
       {"graph_period"},
       0.10,
       blocks_per_second},
      {"context.driver",
       "MB",
       "total less free memory once the context is there",
       {},
       0.0,
       [](const ProbeResult& p, const Gpu&) {
         return Extracted{stated(p.context, "total_less_free_bytes") * 1e-6, 0.0};
       }},
  };
}

}  // namespace

const std::vector<CalibrationRule>& calibration_rules() {
  static const Rules rules = [] {
    Rules all = rules_of_sm_and_board();
    for (const Rules& more : {rules_of_l2(), rules_of_dram_and_launch()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace ridgeline
