// The fuzz targets for libFuzzer, which needs clang: configure with -DRIDGELINE_FUZZ=ON and CXX=clang++, build
// fuzz_sequence and fuzz_history, run `build/tests/fuzz_sequence tests/fuzz/corpus/sequences`.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken = ridgeline::RIDGELINE_FUZZ_TARGET(data, size);
  if (!broken.empty()) {
    std::fprintf(stderr, "%s\n", broken.c_str());
    std::abort();
  }
  return 0;
}
