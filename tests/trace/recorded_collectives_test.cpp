// Kernels of NCCL in a profiler's trace: what they exchange, on which stream, and when the network waits for them.
#include "sim/trace/profiler/recorded_collectives.h"

#include <gtest/gtest.h>

#include "tests/support/trace_text.h"

namespace ridgeline::trace {
namespace {

constexpr const char* kProductArguments =
    R"("Input Dims": [[4, 16], [16, 8]], "Input type": ["float", "float"], "Input Strides": [[16, 1], [8, 1]], "Concrete Inputs": ["", ""])";
constexpr const char* kMessage =
    R"("Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float")";

/// Two products; a collective launched between them that ends at `end` on `stream`; a wait of a stream at 40.
TraceText trace(int stream, double end) {
  TraceText text;
  text.op(0, 10, "aten::mm", kProductArguments).launch(5, 10, 20);
  text.add(
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1, "tid": 1, "ts": 20, "dur": 4, "args": {"correlation": 7}})");
  text.add(fmt::format(
      R"j({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "pid": 0, "tid": {0}, "ts": 30, "dur": {1}, "args": {{"stream": {0}, "correlation": 7, "grid": [8, 1, 1], {2}}}}})j",
      stream, end - 30, kMessage));
  text.host("cuda_runtime", "cudaStreamWaitEvent", 40, 1);
  text.op(50, 10, "aten::mm", kProductArguments).launch(55, 200, 20);
  return text;
}

Replayable read(const TraceText& text, bool knows_links) {
  return read_recording(text.file(), [&](const RecordedGpu&) {
    RecordedDevice device{4e12, 1e-6};
    device.knows_links = knows_links;
    return device;
  });
}

TEST(RecordedCollectives, are_read_from_what_stands_beside_them) {
  const auto of = [](const char* name, std::int64_t sent, std::int64_t received, const char* type) {
    return collective_of({name, type, sent, received, 4}).value();
  };
  EXPECT_EQ(of("allreduce", 10, 10, "Float"),
            (Collective{CollectiveKind::all_reduce, GroupKind::data, DType::fp32, 4, 40}));
  EXPECT_EQ(of("_allgather_base", 10, 40, "BFloat16").bytes, 80);
  EXPECT_EQ(of("_reduce_scatter_base", 40, 10, "Float").bytes, 160);
  EXPECT_EQ(of("reduce_scatter_tensor_coalesced", 40, 10, "Half").kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(of("reduce", 40, 40, "Half").kind, CollectiveKind::reduce);
  EXPECT_EQ(of("send", 5, 0, "Float").bytes, 20);
  EXPECT_FALSE(collective_of({"coalesced", "Float", 1, 1, 2}));
  EXPECT_FALSE(collective_of({"allreduce", "Quaternion", 1, 1, 2}));
  EXPECT_FALSE(collective_of({"allreduce", "Float", 0, 0, 2}));
}

TEST(RecordedCollectives, of_known_links_are_operations_on_a_stream_of_their_own) {
  const Replayable r = read(trace(17, 100), true);
  const OpTrace& t = r.recording.trace;
  ASSERT_EQ(t.calls.size(), 3u);
  EXPECT_EQ(std::get<Collective>(t.ops[t.calls[1].op]),
            (Collective{CollectiveKind::all_reduce, GroupKind::data, DType::fp32, 2, 4000}));
  EXPECT_EQ(t.calls[1].stream, 1);
  EXPECT_EQ(t.calls[2].stream, 0);
  EXPECT_TRUE(r.recorded[1].understood);
}

TEST(RecordedCollectives, are_waited_for_where_the_host_let_a_stream_wait) {
  const auto waits_before_last = [](const Replayable& r) {
    const OpTrace& t = r.recording.trace;
    bool waits = false;
    for (const Record& record : t.records) {
      if (record.kind == Record::Kind::wait_event && record.stream == 0) waits = true;
      if (record.kind == Record::Kind::op && record.index == 2) return waits;
    }
    return false;
  };
  EXPECT_TRUE(waits_before_last(read(trace(17, 100), true)));
  // The second product ran before its end: it cannot have waited.
  EXPECT_FALSE(waits_before_last(read(trace(17, 300), true)));
}

TEST(RecordedCollectives, of_unknown_links_keep_their_time_beside_the_network) {
  const Replayable r = read(trace(17, 100), false);
  const OpTrace& t = r.recording.trace;
  EXPECT_TRUE(std::get<UnknownOp>(t.ops[t.calls[1].op]).name.starts_with("nccl"));
  EXPECT_EQ(t.calls[1].stream, 1);
  EXPECT_NEAR(r.recorded[1].measured, 70e-6, 1e-12);
}

TEST(RecordedCollectives, on_the_networks_stream_stay_on_it) {
  const Replayable r = read(trace(7, 100), true);
  EXPECT_TRUE(r.recording.trace.streams.empty());
  EXPECT_EQ(r.recording.trace.calls[1].stream, 0);
}

TEST(RecordedCollectives, through_shared_memory_are_those_of_their_operator_and_of_all_ranks) {
  EXPECT_TRUE(is_collective_kernel("void (anonymous namespace)::multimem_all_reduce_kernel<float, 16>(float*)"));
  EXPECT_FALSE(is_collective_kernel("reduce_kernel"));
  TraceText text;
  text.op(0, 20, "symm_mem::multimem_all_reduce_", R"("Input Dims": [[1000], [], []], "Input type": ["float", "", ""])")
      .launch(5, 40, 9, "multimem_all_reduce_kernel<float>");
  const std::string path = temporary_path("shared.json");
  const auto op_of = [&](const std::string& world) {
    std::ofstream(path) << "{\"distributedInfo\": {\"world_size\": " << world << "}," << text.text().substr(1);
    const Replayable r = read_recording(path, [](const RecordedGpu&) {
      RecordedDevice device{4e12, 1e-6};
      device.knows_links = true;
      return device;
    });
    return r.recording.trace.ops.at(0);
  };
  EXPECT_EQ(op_of("8"), Op(Collective{CollectiveKind::all_reduce, GroupKind::tensor, DType::fp32, 8, 4000}));
  EXPECT_TRUE(std::holds_alternative<UnknownOp>(op_of("1")));
}

}  // namespace
}  // namespace ridgeline::trace
