#include "sim/study/validation/kernel_validation.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/validation/cited_sources.h"
#include "sim/study/validation/generated_kernels.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/study/validation/recorded_calls.h"
#include "sim/study/validation/stated_software.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// A board that has been under a kernel for `repetitions` of it: one takes up as much of what its averaging of power
/// forgives as that many of them.
Gpu under_load(Gpu gpu, int repetitions) {
  gpu.power.averaging = gpu.power.averaging / static_cast<double>(repetitions);
  return gpu;
}

/// The predictors of one GPU for the last of so many repetitions in a row.
struct Predictors {
  Predictors(const std::string& name, int repetitions)
      : measured(under_load(load_gpu(name), repetitions)),
        datasheet(under_load(load_gpu(name, {}, Numbers::datasheet), repetitions)),
        analytic(make_timing_engine("analytic", measured)),
        analytic_datasheet(make_timing_engine("analytic", datasheet)),
        roofline(make_timing_engine("roofline", datasheet)),
        simulate(make_engine("simulate", measured)),
        cited(name) {}
  Gpu measured, datasheet;

  /// How this GPU runs ops under a software stack, which outlives this; prepared once.
  struct Lowerings {
    Lowering measured, datasheet;
  };
  const Lowerings& under(const Software& software) {
    return lowerings_.try_emplace(&software, Lowerings{{measured, software}, {datasheet, software}}).first->second;
  }

  std::unique_ptr<TimingEngine> analytic, analytic_datasheet, roofline, simulate;
  CitedSources cited;

 private:
  std::map<const Software*, Lowerings> lowerings_;
};

/// The stack of a published row in its own words; where they name PyTorch without a version that of 2023, and of
/// libraries without PyTorch today's.
std::string software_of(const json& row) {
  const std::string words = row.contains("software") && row["software"].is_string() ? row["software"] : "";
  const bool of_2023 = words.find("PyTorch") != std::string::npos && words.find("not stated") != std::string::npos;
  return software_stated_in(words, of_2023 ? "pytorch-2.0" : "pytorch-2.11");
}

/// A row's op, or the ops that were timed together (forward and backward of attention).
std::vector<KernelCase> cases_of(const json& row) {
  if (!row.contains("sum_of") || !row["sum_of"].is_array() || row["sum_of"].empty()) return {kernel_case_from(row)};
  std::vector<KernelCase> cases;
  for (const json& op : row["sum_of"]) {
    json one = row;
    one["op"] = op;
    cases.push_back(kernel_case_from(one));
  }
  return cases;
}

class Validation {
 public:
  Validation(std::string_view hardware, bool simulated) : only_(hardware), simulated_(simulated) {}

  /// Operations timed together, with the launch that their time holds at least.
  struct Timed {
    std::string hardware, op, dtype, source, publisher;
    Seconds measured, floor{0};
    const MeasuredOp* row = nullptr;  ///< none of published kernels
    std::string shape{};              ///< of a single call, as it was drawn
  };
  void add(const Timed& timed, const std::string& software, std::vector<KernelCase> kernels) {
    if (!only_.empty() && timed.hardware != only_) return;
    const auto names = hardware_names();
    if (std::find(names.begin(), names.end(), timed.hardware) == names.end()) return;
    const int repetitions = timed.row ? timed.row->back_to_back : 1;
    std::unique_ptr<Predictors>& predictors = predictors_[{timed.hardware, repetitions}];
    if (!predictors) predictors = std::make_unique<Predictors>(timed.hardware, repetitions);
    Predictors& p = *predictors;
    const std::string family(family_of(kernels.front().op));
    const Gpu& gpu = p.measured;
    ValidatedCase result{.hardware = timed.hardware,
                         .die = fmt::format("{}.{} with {} SMs", gpu.compute_major, gpu.compute_minor, gpu.sm.count),
                         .kind = {},
                         .op = timed.op,
                         .dtype = timed.dtype,
                         .source = timed.source,
                         .software = software,
                         .seen_by = timed.publisher.empty() ? "" : p.cited.seen_by(timed.publisher, family),
                         .measured = timed.measured,
                         .shape = timed.shape};
    asked_.push_back({std::move(result), timed, std::move(kernels), {}, {}, &p, &p.under(stack(software))});
  }

  void add(const MeasuredFile& file, const GeneratedKernel& kernel) {
    const Timed timed{.hardware = file.machine.hardware,
                      .op = kernel.op.name,
                      .dtype = std::string(name_of(kernel.op.type)),
                      .source = "compiled",
                      .publisher = {},
                      .measured = kernel.time};
    const std::size_t before = asked_.size();
    add(timed, file.machine.software, {{kernel.op}});
    if (asked_.size() > before) asked_.back().generated = kernel;
  }

  /// Every case that its GPU can run, in the order in which they were added.
  std::vector<ValidatedCase> predict() {
    tbb::parallel_for(std::size_t{0}, asked_.size(), [&](std::size_t i) { predict(asked_[i]); });
    std::vector<ValidatedCase> cases;
    for (Asked& asked : asked_)
      if (!asked.result.predicted.empty()) cases.push_back(std::move(asked.result));
    return cases;
  }

 private:
  struct Asked {
    ValidatedCase result;
    Timed timed;
    std::vector<KernelCase> kernels;
    std::optional<GeneratedKernel> generated{};  ///< whose launch is given
    std::optional<KernelCase> bytes{};           ///< one memory-bound operation as an unknown one of its bytes
    const Predictors* predictors = nullptr;
    const Predictors::Lowerings* under = nullptr;
  };

  /// The kind of a case's first operation, and what the case is to those who know its bytes alone.
  static void describe(Asked& asked, const KernelCase& kernel, const KernelPrediction& predicted) {
    if (!asked.result.kind.operation.empty() || predicted.launches.empty()) return;
    asked.result.kind = kind_of(kernel.op, predicted.launches[predicted.longest]);
    const std::string_view family = asked.result.kind.family;
    if (asked.kernels.size() > 1 || (family != "pointwise" && family != "reduction")) return;
    std::map<int, double> read, written;
    for (const KernelLaunch& launch : predicted.launches) {
      for (const Access& access : launch.reads)
        if (access.operand >= 0) read[access.operand] = std::max(read[access.operand], access.bytes);
      for (const Access& access : launch.writes)
        if (access.operand >= 0) written[access.operand] = std::max(written[access.operand], access.bytes);
    }
    const auto sum = [](const std::map<int, double>& bytes) {
      double total = 0;
      for (const auto& [operand, count] : bytes) total += count;
      return static_cast<std::int64_t>(total);
    };
    if (read.empty() && written.empty()) return;  // lists of tensors
    asked.bytes = KernelCase{UnknownOp{asked.timed.op, sum(read), sum(written)}, kernel.input_sets, -1};
  }

  void predict_generated(Asked& asked) const {
    const GeneratedKernel& kernel = *asked.generated;
    const Predictors& p = *asked.predictors;
    const auto time = [&](const TimingEngine& engine) { return engine.time(kernel.launch, kernel.residency).time; };
    asked.result.kind = kind_of(kernel.op, kernel.launch);
    std::map<std::string, Seconds>& predicted = asked.result.predicted;
    predicted["analytic"] = time(*p.analytic);
    predicted["analytic-datasheet"] = time(*p.analytic_datasheet);
    predicted["roofline"] = time(*p.roofline);
    if (simulated_) predicted["simulate"] = time(*p.simulate);
  }

  /// Leaves a case without predictions where it was measured with a backend that this GPU's file does not have.
  void predict(Asked& asked) const {
    if (asked.generated) return predict_generated(asked);
    const Predictors& p = *asked.predictors;
    const Timed& timed = asked.timed;
    const auto time = [&](const Lowering& lowering, const TimingEngine& engine) {
      Seconds sum{0};
      for (const KernelCase& kernel : asked.kernels) {
        const KernelPrediction predicted = predict_kernel(kernel, lowering, engine);
        if (&engine == p.analytic.get()) describe(asked, kernel, predicted);
        sum += predicted.time;
        if (timed.row) sum += between_kernels(*timed.row, predicted.launches.size(), lowering.gpu());
      }
      return std::max(sum, timed.floor);
    };
    std::map<std::string, Seconds> predicted;
    try {
      predicted["analytic"] = time(asked.under->measured, *p.analytic);
      predicted["analytic-datasheet"] = time(asked.under->datasheet, *p.analytic_datasheet);
      predicted["roofline"] = time(asked.under->datasheet, *p.roofline);
      if (asked.bytes)
        asked.result.by_bytes =
            std::max(predict_kernel(*asked.bytes, asked.under->measured, *p.analytic).time, timed.floor);
      if (simulated_) predicted["simulate"] = time(asked.under->measured, *p.simulate);
    } catch (const std::invalid_argument&) {
      return;
    } catch (const UserError&) {
      return;  // a shape that cannot be
    }
    asked.result.predicted = std::move(predicted);
  }

  const Software& stack(const std::string& name) {
    const auto found = stacks_.find(name);
    return found != stacks_.end() ? found->second : stacks_.emplace(name, load_software(name)).first->second;
  }

  std::string only_;
  bool simulated_;
  std::map<std::string, Software> stacks_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Predictors>> predictors_;
  std::vector<Asked> asked_;
};

/// Our own: rows that no fit sees. The result must live until they are predicted.
MeasuredOps add_own(Validation& validation, const MeasurementIndex& index, std::string_view hardware) {
  const auto on_it = [&](const MeasuredFile& file) { return hardware.empty() || file.machine.hardware == hardware; };
  MeasuredOps measured = load_measured_ops(index, {.files = on_it, .held_out_only = true});
  for (const MeasuredOp& row : measured.rows)
    validation.add({row.file->machine.hardware, row.op, row.dtype,
                    row.file->kind == "published-ops" ? "public, serving"
                    : row.file->unusual_shapes        ? "wide"
                                                      : "ours",
                    "", row.time, Seconds{0}, &row},
                   row.file->machine.software, {{row.kernel}});
  return measured;
}

/// Kernels of torch.compile that no fit sees.
void add_generated(Validation& validation, const MeasurementIndex& index) {
  const auto add = [&](const MeasuredFile& file, const std::vector<GeneratedKernel>& kernels) {
    for (const GeneratedKernel& kernel : kernels)
      if (kernel.held_out) validation.add(file, kernel);
  };
  for (const MeasuredFile* file : index.of_kind("fused-kernels")) add(*file, generated_of_steps(*file));
  std::map<std::string, Gpu> gpus;
  for (const MeasuredFile* file : index.of_kind("calls")) {
    const std::string& name = file->machine.hardware;
    add(*file, generated_of_calls(*file, gpus.try_emplace(name, load_gpu(name)).first->second));
  }
}

/// Single calls that are one operation and that no fit sees, each after a sweep of the L2.
void add_calls(Validation& validation, const MeasuredFile& file) {
  for_each_row(file, [&](const json& row) {
    if (!row.contains("aten")) return;
    const std::uint64_t shape = hash_of(row["op"].get<std::string>() + row["case"].dump());
    if (file.split == Split::fit || (file.split == Split::by_shape && !held_out_by_shape(shape))) return;
    const std::vector<Op> ops = recorded_ops(row);
    if (ops.size() != 1) return;
    double us = 0;
    for (const json& kernel : row["kernels"]) us += kernel["us_cold"].get<double>();
    Validation::Timed timed{file.machine.hardware, row["op"], "", "calls", "", microseconds(us)};
    timed.shape = row["case"].dump();
    validation.add(timed, file.machine.software, {{ops.front()}});
  });
}

/// Published cases: rows of doubtful trust or dominated by their launch are left out.
void add_published(Validation& validation, const MeasuredFile& file) {
  for_each_row(file, [&](const json& published) {
    json row = published;
    const std::string trust = row.value("trust", "low");
    if (trust == "low" || trust == "medium-low" || row.value("small", false)) return;
    // The op of an attention row is that of its plot; what ran is named beside it. FlashAttention-3 is no kernel of
    // PyTorch and has no law here.
    const std::string ran =
        row.contains("implementation") && row["implementation"].is_string() ? row["implementation"] : "";
    if (ran.starts_with("FlashAttention-3")) return;
    if (ran.starts_with("cuDNN") && row["op"] == "flash_attention") row["op"] = "cudnn_attention";
    // FlashAttention's own benchmarks call it with [batch, seq, heads, head_dim], which its backward need not copy.
    if (ran.starts_with("FlashAttention-2")) row["params"]["head_major"] = false;
    const double floor_us =
        row.value("includes_launch", false) && row.contains("floor_us") && row["floor_us"].is_number()
            ? row["floor_us"].get<double>()
            : 0.0;
    const double us = row["measured_us"].get<double>();
    if (us < 4.0 * floor_us) return;
    if (row.value("l2_state", "") == std::string("warm")) row["input_sets"] = 1;
    const std::string hardware =
        row.contains("simulate_as") && row["simulate_as"].is_string() ? row["simulate_as"] : row["hardware"];
    try {
      validation.add(
          {hardware, row["op"], row["dtype"], "public", row["source"], microseconds(us), microseconds(floor_us)},
          software_of(row), cases_of(row));
    } catch (const KernelCaseError&) {
      return;  // ops outside the vocabulary
    }
  });
}

}  // namespace

std::vector<ValidatedCase> validate_kernels(const std::string& folder, std::string_view hardware, bool simulated) {
  const MeasurementIndex index(folder);
  Validation validation(hardware, simulated);
  const MeasuredOps own = add_own(validation, index, hardware);
  add_generated(validation, index);
  for (const MeasuredFile* file : index.of_kind("calls")) add_calls(validation, *file);
  for (const MeasuredFile* file : index.of_kind("published-kernels")) add_published(validation, *file);
  return validation.predict();
}

}  // namespace ridgeline
