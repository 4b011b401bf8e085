// What a class of kernels is fitted on: measured times, and the law as a function of its constants.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fit/law_table.h"
#include "fit/measurements.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"

namespace ridgeline::fit {

struct Observation {
  double seconds = 0;
  int machine = 0;
  bool held_out = false;
  std::uint64_t shape = 0, row = 0;
};

struct Problem {
  std::string name;  ///< of the class
  std::vector<Observation> cases{};
  /// Seconds that the law gives cases `which` with these constants. Names that the law does not have are an error.
  std::function<void(const Values& constants, std::span<const std::size_t> which, std::span<double> seconds)> predict{};
};

/// The GPU and the software that everything was measured with, but for packed attention and products of fp8.
struct Laboratory {
  Gpu gpu;
  Software software;
  Gpu other_gpu;  ///< … which were measured beside this one
};

/// Problems of a table, by its classes; rows that say nothing of any are left out. The laboratory must outlive them.
std::vector<Problem> memory_bound_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> attention_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> convolution_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> split_reduction_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> product_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> network_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> host_class_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> wrapper_problems(const Measurements& measurements, const Laboratory& laboratory);
std::vector<Problem> overlap_problems(const Measurements& measurements, const Laboratory& laboratory);

}  // namespace ridgeline::fit
