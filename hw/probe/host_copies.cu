// Copies between host and device, pinned and pageable, by size.
//
// Idea: large pinned copies show the link, small ones its latency; pageable memory goes through the driver's staging
// buffer.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "hw/probe/probe.h"

namespace probe {
namespace {

Point copied(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, bool pinned) {
  std::vector<double> seconds;
  for (int sample = 0; sample < 6; ++sample) {
    CHECK_CUDA(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, kind));
    CHECK_CUDA(cudaDeviceSynchronize());
    if (sample > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return {{{"bytes", double(bytes)}, {"pinned", double(pinned)}, {"to_device", double(kind == cudaMemcpyHostToDevice)}},
          bytes / median,
          median,
          (seconds.back() - seconds.front()) / median,
          int(seconds.size())};
}

}  // namespace

Curves host_copies(const Device&) {
  Curve curve{"host_copy", "B/s", "copy between host and device, by bytes, pinned or pageable, to or from the device"};
  const std::size_t largest = 256 * kMiB;
  Buffer<char> device(largest);
  char* pinned = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, largest));
  std::vector<char> pageable(largest, 3);
  std::memset(pinned, 5, largest);
  for (const std::size_t bytes :
       {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, largest}) {
    curve.points.push_back(copied(device.get(), pinned, bytes, cudaMemcpyHostToDevice, true));
    curve.points.push_back(copied(pageable.data(), device.get(), bytes, cudaMemcpyDeviceToHost, false));
    curve.correct = expect(pageable[bytes - 1] == 5, "host_copies", "bytes that came back") && curve.correct;
    curve.points.push_back(copied(device.get(), pageable.data(), bytes, cudaMemcpyHostToDevice, false));
    curve.points.push_back(copied(pinned, device.get(), bytes, cudaMemcpyDeviceToHost, true));
  }
  CHECK_CUDA(cudaFreeHost(pinned));
  return {curve};
}

}  // namespace probe
