// The fuzz targets for libFuzzer, which needs clang: `./dev check fuzz` builds and runs them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/token_mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken = ridgeline::RIDGELINE_FUZZ_TARGET(data, size);
  if (!broken.empty()) {
    std::fprintf(stderr, "%s\n", broken.c_str());
    std::abort();
  }
  return 0;
}

#ifdef RIDGELINE_FUZZ_TEXT
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  static ridgeline::TokenMutator mutator;
  std::mt19937_64 random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text = mutator.changed({reinterpret_cast<const char*>(data), size}, random);
  const std::size_t length = std::min(text.size(), most);
  if (length == 0) return size;  // nothing is no change
  std::memcpy(data, text.data(), length);
  return length;
}
#endif
