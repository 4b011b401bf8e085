// What turning the DRAM bus between reads and writes costs: streams of r reads and w writes over arrays far larger than
// the L2.
//
// Idea: 1/bandwidth is linear in the share of writes where directions do not disturb each other; what is missing is the
// turnaround.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kMixThreads = 256;

/// Thread block b handles one 4-KiB piece of every array: kReads are summed, the sum goes to each of kWrites.
template <int kReads, int kWrites>
__global__ void mix_kernel(float4* data, std::size_t pieces, float* sink) {
  const std::size_t at = blockIdx.x * std::size_t{kMixThreads} + threadIdx.x, array = pieces * kMixThreads;
  float4 sum = make_float4(0, 0, 0, 0);
  float4 x[kReads > 0 ? kReads : 1];
#pragma unroll
  for (int r = 0; r < kReads; ++r) x[r] = data[r * array + at];
#pragma unroll
  for (int r = 0; r < kReads; ++r) sum = make_float4(sum.x + x[r].x, sum.y + x[r].y, sum.z + x[r].z, sum.w + x[r].w);
#pragma unroll
  for (int w = 0; w < kWrites; ++w) data[(kReads + w) * array + at] = sum;
  if (kWrites == 0 && sum.x == 12345.678f) *sink = sum.x;
}

template <int kReads, int kWrites>
void add(Curve& curve, Buffer<float>& data, float* sink) {
  const std::size_t pieces = data.bytes() / ((kReads + kWrites) * kMixThreads * sizeof(float4));
  const double bytes = double(pieces) * (kReads + kWrites) * kMixThreads * sizeof(float4);
  fill_pattern(data.get(), data.size());
  const auto launch = [&](cudaStream_t s) {
    mix_kernel<kReads, kWrites>
        <<<static_cast<unsigned>(pieces), kMixThreads, 0, s>>>(reinterpret_cast<float4*>(data.get()), pieces, sink);
  };
  launch(nullptr);
  if (kWrites > 0) {
    const std::size_t array = pieces * kMixThreads * 4;
    std::vector<float> first(64);
    CHECK_CUDA(cudaMemcpy(first.data(), data.get() + kReads * array, first.size() * 4, cudaMemcpyDeviceToHost));
    bool right = true;
    for (std::size_t i = 0; i < first.size(); ++i) {
      float sum = 0;
      for (int r = 0; r < kReads; ++r) sum += pattern(r * array + i);
      right = right && std::abs(sum - first[i]) < 1e-4f;
    }
    curve.correct = expect(right, "read_write_mix", "sum of the arrays read") && curve.correct;
  }
  const Timing t = period(launch);
  curve.points.push_back(
      {{{"reads", kReads}, {"writes", kWrites}, {"bytes", bytes}}, bytes / t.seconds, t.seconds, t.spread, t.samples});
}

}  // namespace

Curves read_write_mix(const Device& device) {
  Curve curve{"read_write_mix", "B/s", "streams of r reads and w writes, all bytes, DRAM"};
  Buffer<float> data((device.properties.totalGlobalMem > 16 * kGiB ? 2 * kGiB : 512 * kMiB) / 4);
  Buffer<float> sink(1);
  add<1, 0>(curve, data, sink.get());
  add<7, 1>(curve, data, sink.get());
  add<4, 1>(curve, data, sink.get());
  add<3, 1>(curve, data, sink.get());
  add<5, 2>(curve, data, sink.get());
  add<2, 1>(curve, data, sink.get());
  add<3, 2>(curve, data, sink.get());
  add<1, 1>(curve, data, sink.get());
  add<2, 3>(curve, data, sink.get());
  add<1, 2>(curve, data, sink.get());
  add<1, 3>(curve, data, sink.get());
  add<1, 7>(curve, data, sink.get());
  add<0, 1>(curve, data, sink.get());
  return {curve};
}

}  // namespace probe
