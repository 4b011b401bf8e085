// Three ways from global to shared memory with few warps: loads through registers, cp.async, and the bulk copy engine
// (TMA), each with two to eight stages of 16 KiB in flight.
//
// Idea: what is in flight decides the bandwidth (Little). Registers limit plain loads; cp.async needs none; the bulk
// copy needs one thread. Sources: CUDA C++ Programming Guide, asynchronous copies; PTX ISA, cp.async.bulk.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kAsyncThreads = 128, kStage = 16384, kPieces = kStage / (16 * kAsyncThreads);
enum class Way { registers, cp_async, bulk };

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

template <int kStages>
__device__ void take(const char* stage, float& sum) {
  const float4* values = reinterpret_cast<const float4*>(stage);
#pragma unroll
  for (int i = 0; i < kPieces; ++i) sum += values[threadIdx.x + i * kAsyncThreads].x;
}

template <Way kWay, int kStages>
__global__ void __launch_bounds__(kAsyncThreads) pipeline_kernel(const char* data, int stages_a_block, float* sums) {
  extern __shared__ __align__(128) char shared[];
  const char* mine = data + std::size_t{blockIdx.x} * stages_a_block * kStage;
  float sum = 0;
  if constexpr (kWay == Way::registers) {
    for (int s = 0; s < stages_a_block; ++s) {
      float4 x[kPieces];
      const float4* from = reinterpret_cast<const float4*>(mine + std::size_t(s) * kStage);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) x[i] = __ldcg(from + threadIdx.x + i * kAsyncThreads);
      float4* to = reinterpret_cast<float4*>(shared + (s % kStages) * kStage);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) to[threadIdx.x + i * kAsyncThreads] = x[i];
      __syncthreads();
      take<kStages>(shared + (s % kStages) * kStage, sum);
    }
  }
#if __CUDA_ARCH__ >= 800
  if constexpr (kWay == Way::cp_async) {
    const auto fetch = [&](int s) {
      if (s < stages_a_block)
#pragma unroll
        for (int i = 0; i < kPieces; ++i)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                           shared_address(shared + (s % kStages) * kStage + (threadIdx.x + i * kAsyncThreads) * 16)),
                       "l"(mine + std::size_t(s) * kStage + (threadIdx.x + i * kAsyncThreads) * 16));
      asm volatile("cp.async.commit_group;");
    };
    for (int s = 0; s < kStages - 1; ++s) fetch(s);
    for (int s = 0; s < stages_a_block; ++s) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
      __syncthreads();
      fetch(s + kStages - 1);
      take<kStages>(shared + (s % kStages) * kStage, sum);
    }
  }
#endif
#if __CUDA_ARCH__ >= 900
  if constexpr (kWay == Way::bulk) {
    __shared__ __align__(8) std::uint64_t full[kStages];
    if (threadIdx.x == 0)
      for (int s = 0; s < kStages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + s)));
    __syncthreads();
    const auto fetch = [&](int s) {
      if (s >= stages_a_block || threadIdx.x != 0) return;
      const unsigned barrier = shared_address(full + s % kStages);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(kStage) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(shared + (s % kStages) * kStage)),
                   "l"(mine + std::size_t(s) * kStage), "r"(kStage), "r"(barrier)
                   : "memory");
    };
    for (int s = 0; s < kStages - 1; ++s) fetch(s);
    for (int s = 0; s < stages_a_block; ++s) {
      const unsigned barrier = shared_address(full + s % kStages), parity = (s / kStages) & 1;
      asm volatile(
          "{ .reg .pred done; wait_%=: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra wait_%=; "
          "}" ::"r"(barrier),
          "r"(parity)
          : "memory");
      __syncthreads();
      fetch(s + kStages - 1);
      take<kStages>(shared + (s % kStages) * kStage, sum);
    }
  }
#endif
  sums[blockIdx.x * kAsyncThreads + threadIdx.x] = sum;
}

template <Way kWay, int kStages>
void add(Curve& curve, const Device& device, const Buffer<float>& data, Buffer<float>& sums, double way) {
  if (kStages * kStage + 2048 > static_cast<int>(device.properties.sharedMemPerBlockOptin)) return;
  const int stages_a_block = static_cast<int>(data.bytes() / kStage / device.sm_count);
  const auto* bytes = reinterpret_cast<const char*>(data.get());
  CHECK_CUDA(cudaFuncSetAttribute(pipeline_kernel<kWay, kStages>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kStages * kStage));
  const auto launch = [&](cudaStream_t s) {
    pipeline_kernel<kWay, kStages>
        <<<device.sm_count, kAsyncThreads, kStages * kStage, s>>>(bytes, stages_a_block, sums.get());
  };
  launch(nullptr);
  CHECK_CUDA(cudaGetLastError());
  const float found = sums.to_host(1)[0];
  double expected = 0;
  for (int s = 0; s < stages_a_block; ++s)
    for (int i = 0; i < kPieces; ++i) expected += pattern(std::size_t(s) * kStage / 4 + std::size_t(i) * kAsyncThreads * 4);
  curve.correct = expect(std::abs(found - expected) < 0.05, "async_copy", "sum over the stages") && curve.correct;
  const Timing t = period(launch, 3);
  const double moved = double(stages_a_block) * kStage * device.sm_count;
  curve.points.push_back(
      {{{"way", way}, {"stages", kStages}, {"bytes", moved}}, moved / t.seconds, t.seconds, t.spread, t.samples});
}

template <Way kWay>
void add_all(Curve& curve, const Device& device, const Buffer<float>& data, Buffer<float>& sums, double way) {
  add<kWay, 2>(curve, device, data, sums, way);
  add<kWay, 3>(curve, device, data, sums, way);
  add<kWay, 4>(curve, device, data, sums, way);
  add<kWay, 5>(curve, device, data, sums, way);
  add<kWay, 6>(curve, device, data, sums, way);
  add<kWay, 8>(curve, device, data, sums, way);
}

}  // namespace

Curves async_copy(const Device& device) {
  Curve curve{
      "async_copy", "B/s",
      "DRAM to shared memory, 128 threads an SM, stages of 16 KiB; way 0: registers, 1: cp.async, 2: bulk copy"};
  Buffer<float> data(512 * kMiB / 4), sums(std::size_t(device.sm_count) * kAsyncThreads);
  fill_pattern(data.get(), data.size());
  add<Way::registers, 2>(curve, device, data, sums, 0);
  if (device.at_least(8, 0)) add_all<Way::cp_async>(curve, device, data, sums, 1);
  if (device.at_least(9, 0)) add_all<Way::bulk>(curve, device, data, sums, 2);
  return {curve};
}

}  // namespace probe
