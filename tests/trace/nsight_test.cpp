// Reports of Nsight Systems, exported as SQLite: what each table says is read, in schemas of several years; damaged and
// foreign databases are refused in a sentence.
#include "sim/trace/nsight/read_nsight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "sim/answer/replay.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/nsight_database.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using trace::Defects;
using trace::ProfilerEvents;
using trace::read_nsight;
using Year = NsightDatabase::Year;

/// Steps of a copy and kernels one behind another, each in a range "step N"; between them the host waits.
void add_steps(NsightDatabase& database, int steps, int kernels, double each = 200.0) {
  double host = 0.0, gpu = 0.0;
  for (int s = 0; s < steps; ++s) {
    const double begin = host;
    const auto launched = [&](const char* call) {
      const int correlation = database.call(call, host, 5.0);
      host += 10.0;
      return correlation;
    };
    const int copied = launched("cudaMemcpyAsync_v3020");
    gpu = std::max(gpu + 1.0, host);
    database.copy(copied, gpu, 60.0, 2'000'000);
    gpu += 60.0;
    for (int k = 0; k < kernels; ++k) {
      const int correlation = launched("cudaLaunchKernel_v7000");
      gpu = std::max(gpu + 1.0, host);
      database.kernel(correlation, gpu, each, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn");
      gpu += each;
    }
    const double waited = std::max(5.0, gpu - host + 5.0);
    database.call("cudaStreamSynchronize_v3020", host, waited);
    host += waited + 3.0;
    database.range("step " + std::to_string(s), begin, host - 1.0, s % 2 == 1);
  }
}

ProfilerEvents report_events(const NsightDatabase& database) {
  Defects defects;
  return read_nsight(database.path(), defects);
}

std::string report_refusal(const std::string& path) {
  Defects defects;
  try {
    (void)read_nsight(path, defects);
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST(Nsight, TablesOfEveryYearAreReadAlike) {
  for (const Year year : {Year::y2020, Year::y2024}) {
    NsightDatabase database("years.sqlite", year);
    add_steps(database, 3, 4);
    const int cleared = database.call("cudaMemsetAsync", 10'000.0, 4.0);
    database.set(cleared, 10'010.0, 2.0, 4096);
    const ProfilerEvents events = report_events(database);
    ASSERT_EQ(events.gpu.size(), 3u * 5u + 1u);
    EXPECT_EQ(events.runtime.size(), 3u * 6u + 1u);
    EXPECT_EQ(events.names[events.gpu.front().name], "Memcpy HtoD (Pinned -> Device)");
    EXPECT_EQ(events.gpu.front().bytes, 2'000'000);
    EXPECT_EQ(events.gpu[1].blocks, 8);
    EXPECT_EQ(events.names[events.runtime.front().name], "cudaMemcpyAsync") << "without the version of the call";
    EXPECT_EQ(events.names[events.gpu.back().name], "Memset (Device)");
    EXPECT_DOUBLE_EQ(events.gpu[1].end - events.gpu[1].begin, 200.0);
    ASSERT_EQ(events.steps.size(), 3u);
    EXPECT_EQ(events.names[events.steps[1].name], "step 1") << "a text that stands among the strings";
  }
}

TEST(Nsight, WithoutColumnsOfProcessesAllRowsAreOnes) {
  NsightDatabase database("processes.sqlite", Year::y2020);
  add_steps(database, 2, 3);
  database.run("CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INTEGER, name TEXT, numMultiprocessors INTEGER)");
  database.run("INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Tesla V100-SXM2-16GB', 80)");
  for (const char* table : {"KERNEL", "MEMCPY"})
    database.run(fmt::format("ALTER TABLE CUPTI_ACTIVITY_KIND_{} DROP COLUMN globalPid", table));
  database.run("ALTER TABLE NVTX_EVENTS DROP COLUMN globalTid");
  database.run("ALTER TABLE NVTX_EVENTS DROP COLUMN eventType");
  const ProfilerEvents events = report_events(database);
  EXPECT_EQ(events.gpu.size(), 2u * 4u);
  EXPECT_EQ(events.runtime.size(), 2u * 5u);
  EXPECT_EQ(events.steps.size(), 2u);
  EXPECT_EQ(events.gpu_name, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(events.gpu_sms, 80);
}

TEST(Nsight, StepIsTheRangeThatCoversTheWorkNotAPartOfIt) {
  NsightDatabase database("ranges.sqlite");
  add_steps(database, 4, 6);
  const ProfilerEvents all = report_events(database);
  for (const trace::HostEvent& step : all.steps) {  // a backward pass in which 4 of 7 items were launched
    const double begin = step.begin + 30.0, end = step.begin + 65.0;
    database.range("backward", begin, end);
    database.range("optimizer_step", end, end + 10.0);
  }
  const ProfilerEvents events = report_events(database);
  ASSERT_EQ(events.steps.size(), 4u);
  for (const trace::HostEvent& step : events.steps) EXPECT_THAT(events.names[step.name], HasSubstr("step "));
}

TEST(Nsight, OfSeveralGpusTheBusiestIsReplayedAndAllAreTold) {
  NsightDatabase database("gpus.sqlite");
  const auto add = [&](std::int64_t process, std::int64_t device, int kernels) {
    database.of(process, device);
    database.gpu(device == 1 ? "NVIDIA L4" : "NVIDIA L40S", 20'000'000'000, 58, 8, 9);
    add_steps(database, 2, kernels);
  };
  add(1000, 0, 3), add(1001, 1, 9), add(1002, 2, 5);
  const ProfilerEvents events = report_events(database);
  EXPECT_EQ(events.gpu.size(), 2u * 10u);
  EXPECT_EQ(events.runtime.size(), 2u * 11u) << "calls of the others are none of this one's";
  EXPECT_EQ(events.gpu_name, "NVIDIA L4");
  EXPECT_EQ(events.gpu_sms, 58);
  EXPECT_EQ(events.gpu_capability, 89);
  ASSERT_EQ(events.gpus.size(), 3u);
  EXPECT_NEAR(events.gpus[1].busy, 2.0 * (9 * 200.0 + 60.0) * 1e-6, 1e-9);
  EXPECT_EQ(events.gpus[2].kernels, 12);
}

TEST(Nsight, OperatorsOfEmitNvtxGiveKernelsTheirNames) {
  NsightDatabase database("operators.sqlite");
  add_steps(database, 2, 2);
  const ProfilerEvents before = report_events(database);
  for (const trace::RuntimeEvent& call : before.runtime)
    if (before.names[call.name] == "cudaLaunchKernel")
      database.range("aten::mm, seq = 3, op_id = 7, sizes = [[8, 8], [8, 8]]", call.begin - 1.0, call.end + 1.0);
  const ProfilerEvents events = report_events(database);
  ASSERT_EQ(events.operators.size(), 4u);
  EXPECT_EQ(events.names[events.operators.front().name], "aten::mm");
  EXPECT_EQ(events.annotations.size(), 2u);
}

TEST(Nsight, GraphsWithoutTheirKernelsAreOneKernelEach) {
  NsightDatabase database("graphs.sqlite");
  for (int i = 0; i < 3; ++i)
    database.graph(database.call("cudaGraphLaunch_v10000", 900.0 * i, 8.0), 900.0 * i + 20.0, 800.0, 3);
  const ProfilerEvents events = report_events(database);
  ASSERT_EQ(events.gpu.size(), 3u);
  EXPECT_THAT(events.names[events.gpu.front().name], HasSubstr("CUDA graph 3"));
}

TEST(Nsight, ReplayOnItsOwnGpuIsTheRecordedStep) {
  for (const double each : {30.0, 200.0, 900.0}) {
    NsightDatabase database("replay.sqlite");
    database.gpu("NVIDIA A100-SXM4-80GB", 85'094'760'448, 108, 8, 0);
    add_steps(database, 3, 40, each);
    ScenarioSource source;
    source.file = database.path();
    source.recording = true;
    const ReplayResult result = predict_replay(load_scenario(source), "analytic");
    EXPECT_EQ(result.prediction.hardware, "nvidia-a100-sxm4-80gb") << "the GPU of the report, where none is asked for";
    EXPECT_NEAR(result.prediction.step.time.value() / result.measured.step, 1.0, 0.03) << each;
    EXPECT_EQ(result.measured.kernels, 41);
    EXPECT_EQ(result.format, trace::Format::nsight_systems);
    EXPECT_NEAR(result.critical_path.of(trace::PathKind::kernel), 40.0 * each * 1e-6, 1e-9) << each;
  }
}

TEST(Nsight, DamagedDatabasesAreRefusedOrReadNeverWorse) {
  NsightDatabase database("whole.sqlite");
  add_steps(database, 2, 12);
  std::ifstream in(database.path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string path = temporary_path("damaged.sqlite");
  const auto answer_to = [&](const std::string& damaged) {
    std::ofstream(path, std::ios::binary) << damaged;
    return report_refusal(path);
  };
  for (std::size_t size = 100; size < bytes.size(); size += 1777)
    EXPECT_THAT(answer_to(bytes.substr(0, size)), HasSubstr("damaged")) << size;
  std::uint64_t draw = 1;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 8; ++k) {
      draw = draw * 6364136223846793005ULL + 1442695040888963407ULL;
      damaged[16 + (draw >> 33) % (damaged.size() - 16)] = static_cast<char>(draw >> 17);
    }
    const std::string answer = answer_to(damaged);
    EXPECT_TRUE(answer == "read" || answer.find(path) != std::string::npos) << answer;
  }
}

TEST(Nsight, ForeignDatabasesAreToldFromReports) {
  NsightDatabase other("other.sqlite");
  for (const char* table : {"KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "GRAPH_TRACE"})
    other.run(fmt::format("DROP TABLE CUPTI_ACTIVITY_KIND_{}", table));
  EXPECT_THAT(report_refusal(other.path()), HasSubstr("nothing ran on a GPU"));
  other.run("DROP TABLE StringIds");
  EXPECT_THAT(report_refusal(other.path()), HasSubstr("none of Nsight Systems"));
  // A view is no table: what it would run for is never run.
  other.run(
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM "
      "n) SELECT start, start AS end FROM n");
  EXPECT_THAT(report_refusal(other.path()), HasSubstr("none of Nsight Systems"));
  other.run("CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INTEGER)");
  EXPECT_THAT(report_refusal(other.path()), HasSubstr("nvprof"));
}

TEST(Nsight, ReportsOfNvidiasToolsSayHowToExport) {
  for (const char* name : {"report.nsys-rep", "old.qdrep"})
    EXPECT_THAT(trace::how_to_export(name), HasSubstr(std::string("nsys export --type sqlite ") + name));
  EXPECT_THAT(trace::how_to_export("kernel.ncu-rep"), HasSubstr("--csv"));
  EXPECT_EQ(trace::how_to_export("trace.json"), "");
}

}  // namespace
}  // namespace ridgeline
