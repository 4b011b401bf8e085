#include "sim/scenario/stack_notes.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/hardware/software_choice.h"
#include "sim/scenario/unread_keys.h"
#include "sim/trace/read_recording.h"
#include "sim/workload/composition.h"
#include "sim/workload/networks/program_model.h"

namespace ridgeline {
namespace {

/// First CUDA whose libraries have the matrix kernels that were measured on Hopper (nvjet).
constexpr double kCudaOfHopperKernels = 12.6;

struct TypeOfProduct {
  DType operator()(const Matmul& op) const { return op.type; }
  DType operator()(const Attention& op) const { return op.type; }
  DType operator()(const Convolution& op) const {  // PyTorch allows them TF32 unasked
    return op.type == DType::tf32 ? DType::fp32 : op.type;
  }
  DType operator()(const auto&) const { return DType::fp64; }
};

bool is_bf16(Precision precision) { return precision == Precision::bf16 || precision == Precision::amp_bf16; }

}  // namespace

bool runs_recorded_library(const Scenario& s) {
  if (s.recorded == nullptr || !s.recorded->recorded_on) return false;
  const Gpu& on = *s.recorded->recorded_on;
  const double toolkit = s.recorded->file->toolkit();
  return on.compute_major == s.gpu.compute_major && on.compute_minor == s.gpu.compute_minor &&
         (toolkit <= 0.0 || std::floor(toolkit) == std::floor(s.software.cuda));
}

bool compiles(const Scenario& s) { return s.compile && !(is_bf16(s.training.precision) && s.gpu.compute_major < 8); }

StackNotes notes_of_stack(const Scenario& s) {
  StackNotes result;
  if (!s.model.unread.empty())
    result.notes.push_back(
        fmt::format("keys of the model's config.json that nothing here reads: {}", fmt::join(s.model.unread, ", ")));
  if (s.model.program.given() && !s.model.program->packaged.empty())
    result.notes.push_back(fmt::format("kernels of packages that were not measured (not validated): {}",
                                       fmt::join(s.model.program->packaged, ", ")));
  if (s.model.composition.given() && s.model.composition->stack.image_rows)
    result.notes.push_back(
        fmt::format("one image of {0} x {0} pixels a sequence, {1} of its tokens (model.encoder.image_size)",
                    s.model.composition->encoder->image_size, rows_of_image(*s.model.composition)));
  if (const std::vector<std::string> keys = unread_parallel_keys(s.training); s.cluster && !keys.empty())
    result.notes.push_back(
        fmt::format("keys of training.parallel that nothing reads in this way of training: {}", fmt::join(keys, ", ")));
  const Software& software = s.software;
  if (!has_code_for(software, s.gpu)) {
    result.exists = false;
    result.notes.push_back(fmt::format(
        "{} has no code for compute capability {}.{} (it has {:g} to {:g}): this would not run; --software {} has it",
        software.title, s.gpu.compute_major, s.gpu.compute_minor, software.least_capability, software.most_capability,
        default_software(s.gpu)));
  }
  if (s.compile && !software.has_compile) {
    result.exists = false;
    result.notes.push_back(
        fmt::format("{} has no torch.compile, which came with PyTorch 2.0: this would not run", software.title));
  }
  if (s.compile && !compiles(s))
    result.notes.push_back(fmt::format(
        "torch.compile leaves bf16 uncompiled on compute capability {}.{}, as Triton does: predicted without it",
        s.gpu.compute_major, s.gpu.compute_minor));
  if (s.gpu.architecture == Architecture::hopper && software.cuda < kCudaOfHopperKernels && !runs_recorded_library(s)) {
    result.exists = false;
    result.notes.push_back(
        fmt::format("matrix products run the kernels measured on Hopper with CUDA 13, and {} has older ones: taken "
                    "to need {:g} times as long",
                    software.title, software.hopper_product_time));
  }
  return result;
}

std::vector<std::string> notes_of_units(const OpTrace& trace, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  std::set<DType> asked;
  for (const Op& op : trace.ops) asked.insert(std::visit(TypeOfProduct{}, op));
  std::vector<std::string> notes;
  if (asked.contains(DType::tf32) && rates.tensor_tf32 <= 0.0)
    notes.push_back(fmt::format(
        "{} has no TF32 units: libraries ignore that TF32 is allowed, products run in fp32 on the CUDA cores",
        gpu.title));
  if (asked.contains(DType::bf16) && rates.tensor_bf16 <= 0.0)
    notes.push_back(fmt::format(
        "{} has no bf16 units: bf16 is converted to fp32 and multiplied on the CUDA cores; fp16 would be faster",
        gpu.title));
  if (asked.contains(DType::fp16) && rates.tensor_fp16 <= 0.0)
    notes.push_back(fmt::format("{} has no fp16 tensor cores: products run on the CUDA cores", gpu.title));
  return notes;
}

}  // namespace ridgeline
