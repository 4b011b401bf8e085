// The law, NCCL's choice, copies and the memory of communicators against measurements that no fit saw.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_case.h"
#include "sim/network/collective_range.h"
#include "sim/network/communicator_memory.h"
#include "sim/network/copy_time.h"
#include "sim/network/load_cluster.h"
#include "sim/study/validation/measured_collectives.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

using nlohmann::json;

// Median and worst error of rows that no fit saw.
constexpr double kLargeMedian = 0.04, kLargeWorst = 0.12;          // on H200, from 1 MiB
constexpr double kSmallMedian = 0.12, kSmallWorst = 0.40;          // on H200, below
constexpr double kPublishedMedian = 0.06, kPublishedWorst = 0.25;  // one node, links between GPUs, from 1 MiB
constexpr double kNodesMedian = 0.12, kNodesWorst = 0.25;
constexpr double kRightChannels = 0.95;  // share of kernels with the measured grid and block
constexpr double kCovered = 0.85;        // share of measured times inside their range
constexpr double kCopyMedian = 0.06, kCopyWorst = 0.35;
constexpr double kCommunicatorMemory = 0.03;

const MeasuredCollectives& measured() {
  static const MeasuredCollectives rows = load_measured_collectives(testing::measurements());
  return rows;
}

struct Errors {
  std::vector<double> all{};
  double worst_at = 0;
  std::string worst_name{};
  std::size_t inside = 0;
  std::vector<double> ratios{};  ///< measured over predicted

  void add(const MeasuredCollective& row) {
    const MeasuredCluster& on = measured().clusters[static_cast<std::size_t>(row.cluster)];
    const CollectiveTime time = collective_time(on.cluster, on.gpu, row.collective, row.placement);
    const Seconds shown = shown_time(row, time.loop, time.call);
    const double error = std::abs(ratio(shown, row.time) - 1.0);
    const double low = ratio(time.low, time.time), high = ratio(time.high, time.time), was = ratio(row.time, shown);
    inside += was >= low && was <= high;
    ratios.push_back(was);
    all.push_back(error);
    if (error < worst_at) return;
    worst_at = error;
    worst_name =
        row.series + " " + std::string(name_of(row.collective.kind)) + " " + std::to_string(row.collective.bytes);
  }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

Errors errors_of(const char* what, const std::function<bool(const MeasuredCollective&)>& wanted) {
  Errors errors;
  for (const MeasuredCollective& row : measured().rows)
    if (row.held_out && wanted(row)) errors.add(row);
  EXPECT_GE(errors.all.size(), 15u) << what;
  std::sort(errors.ratios.begin(), errors.ratios.end());
  const auto quantile = [&](double share) {
    return errors.ratios[static_cast<std::size_t>(share * static_cast<double>(errors.ratios.size() - 1) + 0.5)];
  };
  const double covered = static_cast<double>(errors.inside) / static_cast<double>(errors.all.size());
  EXPECT_GE(covered, kCovered) << what;
  fmt::print("{:<34} 4.5 % to 95.5 % of measured over predicted: {:.3f} to {:.3f}\n", what, quantile(0.045),
             quantile(0.955));
  fmt::print("{:<34} n {:3}  median {:4.1f} %  worst {:4.1f} % ({})  inside the range {:.0f} %\n", what,
             errors.all.size(), 100 * errors.median(), 100 * errors.worst_at, errors.worst_name, 100.0 * covered);
  return errors;
}

bool on_h200(const MeasuredCollective& row) { return !row.published; }

TEST(CollectivesAccuracy, large_ones_of_two_and_four_h200) {
  const Errors errors = errors_of("H200 x2, x4, from 1 MiB", [](const MeasuredCollective& row) {
    return on_h200(row) && row.collective.bytes >= kLargeCollective;
  });
  EXPECT_LE(errors.median(), kLargeMedian);
  EXPECT_LE(errors.worst_at, kLargeWorst) << errors.worst_name;
}

TEST(CollectivesAccuracy, small_ones_of_two_and_four_h200) {
  const Errors errors = errors_of("H200 x2, x4, below 1 MiB", [](const MeasuredCollective& row) {
    return on_h200(row) && row.collective.bytes < kLargeCollective;
  });
  EXPECT_LE(errors.median(), kSmallMedian);
  EXPECT_LE(errors.worst_at, kSmallWorst) << errors.worst_name;
}

TEST(CollectivesAccuracy, published_ones_of_one_node) {
  const Errors errors = errors_of("published V100, A100, H200, one node", [](const MeasuredCollective& row) {
    const Cluster& cluster = measured().clusters[static_cast<std::size_t>(row.cluster)].cluster;
    const bool linked = cluster.interconnect == Interconnect::nvswitch || cluster.interconnect == Interconnect::mesh;
    const bool known = cluster.architecture != Architecture::blackwell;  // twelve rows of one source
    const bool by_size = row.series.starts_with("aiconfigurator-");      // below, with bars of their own
    return row.published && !by_size && row.placement.nodes == 1 && linked && known &&
           row.collective.bytes >= kLargeCollective;
  });
  EXPECT_LE(errors.median(), kPublishedMedian);
  EXPECT_LE(errors.worst_at, kPublishedWorst) << errors.worst_name;
}

// nccl-tests, calls back to back: below 256 KiB, to 16 MiB, above.
TEST(CollectivesAccuracy, nccl_tests_of_two_to_eight_gpus_by_size) {
  const auto check = [](const char* what, std::int64_t from, std::int64_t to, double median) {
    const Errors errors = errors_of(what, [&](const MeasuredCollective& row) {
      const Cluster& cluster = measured().clusters[static_cast<std::size_t>(row.cluster)].cluster;
      return row.series.starts_with("aiconfigurator-") && cluster.interconnect == Interconnect::nvswitch &&
             row.collective.bytes >= from && row.collective.bytes <= to;
    });
    EXPECT_LE(errors.median(), median) << what;
  };
  constexpr double kShortMedian = 0.06, kMiddleMedian = 0.08, kLongMedian = 0.04;
  check("nccl-tests below 256 KiB", 0, kShortCollective, kShortMedian);
  check("nccl-tests to 16 MiB", kShortCollective + 1, kMiddleCollective, kMiddleMedian);
  check("nccl-tests above", kMiddleCollective + 1, std::int64_t{1} << 40, kLongMedian);
}

TEST(CollectivesAccuracy, each_chip_s_short_ones_alone) {
  for (const char* chip : {"a100", "h100", "h200", "b200"}) {
    Errors errors;
    for (const MeasuredCollective& row : measured().rows)
      if (row.held_out && row.series.starts_with(std::string("aiconfigurator-") + chip) &&
          row.collective.bytes <= kShortCollective)
        errors.add(row);
    ASSERT_GE(errors.all.size(), 8u) << chip;
    EXPECT_LE(errors.median(), 0.10) << chip;
  }
}

TEST(CollectivesAccuracy, eight_boards_over_pcie_are_within_a_factor) {
  Errors errors;
  for (const MeasuredCollective& row : measured().rows)
    if (row.held_out && row.series.starts_with("aiconfigurator-l40s")) errors.add(row);
  ASSERT_GE(errors.all.size(), 20u);
  EXPECT_LE(errors.median(), 0.25);
  EXPECT_LE(errors.worst_at, 0.80) << errors.worst_name;
}

// One call of torch.distributed.all_reduce between two events of an idle queue, eight H200: 38 to 40 us.
TEST(CollectivesAccuracy, a_call_of_pytorch_has_the_host_s_part) {
  int seen = 0;
  for (const MeasuredCollective& row : measured().rows) {
    if (row.series != "stas00-h200-x8" || row.collective.bytes >= kLargeCollective) continue;
    ASSERT_EQ(row.timed, TimedAs::torch);
    const MeasuredCluster& on = measured().clusters[static_cast<std::size_t>(row.cluster)];
    const CollectiveTime time = collective_time(on.cluster, on.gpu, row.collective, row.placement);
    EXPECT_NEAR(ratio(shown_time(row, time.loop, time.call), row.time), 1.0, 0.2) << row.collective.bytes;
    EXPECT_LT(time.loop, row.time * 0.7) << "nccl-tests' time is another";
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

TEST(CollectivesAccuracy, long_ones_over_nodes) {
  Errors errors;
  for (const MeasuredCollective& row : measured().rows)
    if (row.series == "aws-p4de-x2nodes" || row.series == "aws-p5-x2nodes")
      if (row.collective.bytes >= kLargeCollective) errors.add(row);
  ASSERT_GE(errors.all.size(), 10u);
  EXPECT_LE(errors.median(), kNodesMedian);  // efficiency and latency of these NICs come from some of them
  EXPECT_LE(errors.worst_at, kNodesWorst) << errors.worst_name;
}

TEST(CollectivesAccuracy, known_deviations_are_still_there) {
  int seen = 0;
  for (const MeasuredCollective& row : measured().rows) {
    const bool short_one = row.series == "stas00-b200-x32-4nodes" && row.collective.bytes <= (16 << 20);
    if (!short_one && row.series != "nccltests194-h100pcie-2" && row.series != "bigscience-v100x16-4nodes") continue;
    Errors errors;
    errors.add(row);
    EXPECT_GE(errors.worst_at, 0.4) << errors.worst_name << ": take it off measurements/DEVIATIONS.md";
    ++seen;
  }
  EXPECT_EQ(seen, 8);
}

TEST(CollectivesAccuracy, nccl_took_the_thread_blocks_that_the_choice_says) {
  int right = 0, all = 0;
  for_each_row(testing::measurements().file("h200/parallel/collectives.jsonl"), [&](const json& row) {
    const auto kind = collective_kind_from(row["op"].get<std::string>());
    if (!kind || !row.contains("kernel")) return;
    const Cluster cluster = load_cluster("h200-x" + std::to_string(row["world"].get<int>()));
    const Collective one{.kind = *kind, .ranks = cluster.gpus, .bytes = row["bytes"]};
    const CollectiveTime time = collective_time(cluster, load_gpu(cluster.gpu_name), one, place(cluster, cluster.gpus));
    const bool same = time.channels == row["kernel"]["grid"] && time.threads == row["kernel"]["block"];
    if (!same)
      fmt::print("{} x{} {}: {} x {}, measured {} x {}\n", row["op"].get<std::string>(), cluster.gpus, one.bytes,
                 time.channels, time.threads, row["kernel"]["grid"].dump(), row["kernel"]["block"].dump());
    right += same;
    ++all;
  });
  EXPECT_GE(right, kRightChannels * all) << right << " of " << all;
}

TEST(CopyTime, is_what_copies_of_an_h200_took) {
  const Cluster cluster = load_cluster("h200-x2");
  const Gpu gpu = load_gpu(cluster.gpu_name);
  std::vector<double> errors;
  for_each_row(testing::measurements().file("h200/parallel/copies.jsonl"), [&](const json& row) {
    const std::string op = row["op"];
    const bool pageable = op == "pageable_to_device", host = op == "host_to_device" || op == "device_to_host";
    if (!pageable && !host && op != "device_to_device" && op != "to_device_new") return;
    const CopyRoute route = pageable ? CopyRoute::pageable : host ? CopyRoute::pinned : CopyRoute::peer;
    const Seconds time = copy_time(cluster, gpu, route, Bytes{row["bytes"].get<double>()});
    errors.push_back(std::abs(in_microseconds(time) / row["us"].get<double>() - 1.0));
    EXPECT_LE(errors.back(), kCopyWorst) << row.dump() << " " << in_microseconds(time);
  });
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], kCopyMedian);
}

TEST(CommunicatorMemory, is_what_two_and_four_h200_held) {
  std::ifstream file(testing::measurements().file("h200/parallel/communicator_memory.json").path);
  for (const json& run : json::parse(file)) {
    const int world = run["world"];
    const Cluster cluster = load_cluster("h200-x" + std::to_string(world));
    std::map<std::string, double> after;
    for (const json& stage : run["device_used_bytes_by_rank"][1])
      after.try_emplace(stage["after"].get<std::string>(), stage["bytes"].get<double>());
    const auto expect = [&](const char* from, const char* to, Bytes predicted) {
      const double was = after.at(to) - after.at(from);
      EXPECT_NEAR(predicted.value(), was, kCommunicatorMemory * was) << world << " " << to;
    };
    expect("context", "init_process_group", nccl_base_memory(cluster));
    expect("init_process_group", "first all_reduce", communicator_memory(cluster, {.ranks = world}));
    expect("reduce_scatter", "all_to_all",
           communicator_memory(cluster, {.ranks = world, .collectives = false, .peers = world - 1}));
    expect("end", "second communicator", communicator_memory(cluster, {.ranks = world}));
  }
}

// What groups took that a process made besides that of all ranks (steps.jsonl.gz beside the file): fully_shard makes
// two of two ranks for each of sixteen modules and gathers through one; DTensor splits layers by a scatter from the
// first rank.
TEST(CommunicatorMemory, of_groups_that_are_never_used_and_of_a_scatter) {
  const Cluster four = load_cluster("h200-x4");
  const Bytes used = communicator_memory(four, {.ranks = 2});
  const Bytes unused = communicator_memory(four, {.ranks = 2, .collectives = false});
  constexpr double kOfSixteen = 10914.0 * kMiB, kOfTheSender = 124.0 * kMiB, kOfTheReceiver = 380.0 * kMiB;
  EXPECT_NEAR(16.0 * (used + unused).value(), kOfSixteen, kCommunicatorMemory * kOfSixteen);
  EXPECT_LT(unused, used);
  const auto pairs = [&](CommunicatorUse use) {
    use.ranks = 2;
    use.collectives = false;
    return communicator_memory(four, use).value();
  };
  EXPECT_NEAR(pairs({.sends_to = 1}), kOfTheSender, kCommunicatorMemory * kOfTheSender);
  EXPECT_NEAR(pairs({.receives_from = 1}), kOfTheReceiver, kCommunicatorMemory * kOfTheReceiver);
}

}  // namespace
}  // namespace ridgeline
