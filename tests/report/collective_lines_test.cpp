// What is told of a collective is what the law says of it, in the unit that its heading or key names.
#include "sim/report/text/collective_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_time.h"
#include "sim/network/load_cluster.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Seconds kHostCall{20e-6};

struct CollectiveReport : ::testing::Test {
  Cluster cluster = load_cluster("hgx-h200");
  Gpu gpu = load_gpu(cluster.gpu_name);
  CollectiveLines table{cluster, gpu, kHostCall, true}, lines{cluster, gpu, kHostCall, false};

  /// An all_reduce of floats over the GPUs of one node.
  [[nodiscard]] CollectiveTime time_of(std::int64_t bytes) const {
    return collective_time(cluster, gpu, {CollectiveKind::all_reduce, GroupKind::data, DType::fp32, 8, bytes},
                           place(cluster, 8));
  }
  static std::string line_of(std::int64_t bytes) {
    return fmt::format(R"({{"op":"all_reduce","bytes":{},"gpus":8,"nodes":1}})", bytes);
  }
};

// The range is that of the kernel, seen by nccl-tests: as much longer as its time is.
TEST_F(CollectiveReport, ARowIsInMicrosecondsOrInMilliseconds) {
  for (const auto& [bytes, size, unit, digits] : {std::tuple{std::int64_t{3} << 30, "3 GiB", 1e3, "{:.4g} ms"},
                                                  std::tuple{std::int64_t{5} << 20, "5 MiB", 1e6, "{:.1f} us"}}) {
    const CollectiveTime time = time_of(bytes);
    const double longer = ratio(time.loop, time.time);
    const std::string row = table.answer(line_of(bytes)).text;
    EXPECT_THAT(row, StartsWith("all_reduce ")) << row;
    EXPECT_THAT(row, HasSubstr(" " + std::string(size) + " ")) << row;
    EXPECT_THAT(row, HasSubstr(" " + fmt::format(fmt::runtime(digits), time.loop.value() * unit) + " ")) << row;
    EXPECT_THAT(row, HasSubstr(fmt::format(" {:.3g} to {:.3g} ", time.low.value() * longer * unit,
                                           time.high.value() * longer * unit)))
        << row;
    EXPECT_THAT(row, HasSubstr(fmt::format(" {:.1f} {} {} ", time.bus.value() / 1e9, name_of(time.algorithm),
                                           name_of(time.protocol))))
        << row;
    EXPECT_THAT(row, HasSubstr(fmt::format(" {:>3} ", time.channels))) << row;
  }
}

TEST_F(CollectiveReport, TheThreeTimesAreEachSaid) {
  const json told = json::parse(lines.answer(line_of(1 << 30)).text)["predicted"];
  const CollectiveTime time = time_of(1 << 30);
  const auto expect = [&](const char* key, double value) {
    EXPECT_NEAR(told[key].get<double>(), value, 1e-5 * value) << key;
  };
  const double longer = ratio(time.loop, time.time);
  expect("time_us", time.loop.value() * 1e6);
  expect("pytorch_call_us", (time.call + kHostCall).value() * 1e6);
  EXPECT_THAT(told["timed_as"].get<std::string>(), StartsWith("nccl-tests: "));
  EXPECT_LT(told["kernel_us"], told["time_us"]);
  EXPECT_LT(told["time_us"], told["pytorch_call_us"]);
  expect("kernel_us", time.time.value() * 1e6);
  expect("low_us", time.low.value() * longer * 1e6);
  expect("high_us", time.high.value() * longer * 1e6);
  expect("bus_gb_per_s", time.bus.value() / 1e9);
  expect("wire_bytes", time.wire.value());
  expect("dram_bytes", time.dram.value());
  EXPECT_LT(told["low_us"], told["time_us"]);
  EXPECT_GT(told["high_us"], told["time_us"]);
  EXPECT_EQ(told["channels"], time.channels);
  EXPECT_EQ(told["threads"], time.threads);
  EXPECT_EQ(told["algorithm"], name_of(time.algorithm));
  EXPECT_EQ(told["protocol"], name_of(time.protocol));
  EXPECT_EQ(told["limiter"], name_of(time.limiter));
  EXPECT_EQ(told["validated"], time.validated);
  EXPECT_THAT(told["kernel"].get<std::string>(), StartsWith("ncclDevKernel_AllReduce_Sum_f32"));
}

TEST_F(CollectiveReport, OneRankHasNothingToDo) {
  const std::string row = table.answer(R"({"op":"all_reduce","bytes":512,"gpus":1,"nodes":1})").text;
  EXPECT_THAT(row, StartsWith("all_reduce         512 B        1 "));
  EXPECT_THAT(row, HasSubstr(" none "));
  const json told = json::parse(lines.answer(R"({"op":"all_reduce","bytes":512,"gpus":1,"nodes":1})").text);
  EXPECT_FALSE(told["predicted"].contains("kernel"));
}

TEST_F(CollectiveReport, SeveralNodesAreSaidAsNodesTimesRanks) {
  EXPECT_THAT(table.answer(R"({"op":"all_reduce","bytes":1048576,"gpus":8,"nodes":2})").text, HasSubstr(" 2 x 8 "));
}

TEST_F(CollectiveReport, AMistakeIsToldOnItsLine) {
  const auto answer = lines.answer(R"({"op":"all_reduce"})");
  EXPECT_THAT(answer.mistake, HasSubstr("bytes: missing"));
  EXPECT_EQ(json::parse(answer.text)["op"], "all_reduce");
  EXPECT_EQ(json::parse(answer.text)["error"], answer.mistake);
  const auto none = lines.answer("no JSON");
  EXPECT_EQ(json::parse(none.text)["line"], "no JSON");
  EXPECT_THAT(none.mistake, StartsWith("not a JSON object: "));
  EXPECT_EQ(table.answer("no JSON").text, "");
}

TEST_F(CollectiveReport, TheHeadingNamesTheClusterAboveATableAlone) {
  EXPECT_THAT(table.heading(),
              AllOf(StartsWith(cluster.name + ": " + cluster.title + "\nTimes are those of nccl-tests"),
                    HasSubstr("\ncollective ")));
  EXPECT_EQ(lines.heading(), "");
}

TEST(ClusterList, HasARowForEachCluster) {
  const std::string list = cluster_list();
  for (const std::string& name : cluster_names()) {
    const Cluster c = load_cluster(name);
    const std::size_t at = list.find("\n" + name + " ");
    ASSERT_NE(at, list.npos) << name;
    const std::string row = list.substr(at + 1, list.find('\n', at + 1) - at - 1);
    EXPECT_LE(row.size(), 80u) << row;
    EXPECT_THAT(
        row, HasSubstr(fmt::format(" {:>5} {:>4} {}", c.nodes, c.gpus, c.gpu_name.substr(c.gpu_name.find('-') + 1))));
    if (c.nics.count == 0) {
      EXPECT_THAT(row, ::testing::EndsWith(" none")) << name;
    } else {
      EXPECT_THAT(row, HasSubstr(fmt::format(" {} x {:.0f} Gbit/s", c.nics.count, c.nics.rate.value() * 8 / 1e9)));
    }
    const bool linked = c.interconnect == Interconnect::nvswitch || c.interconnect == Interconnect::mesh ||
                        c.interconnect == Interconnect::bridge;
    const double rate = linked ? c.links.count * c.links.rate.value() : c.pcie.rate.value();
    EXPECT_THAT(row, HasSubstr(fmt::format(" {:.4g} ", rate / 1e9))) << name;
  }
}

}  // namespace
}  // namespace ridgeline
