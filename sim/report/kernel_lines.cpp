#include "sim/report/kernel_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/hierarchy/make_engine.h"
#include "sim/input/json_depth.h"
#include "sim/report/json/kernel_json.h"
#include "sim/report/text/kernel_text.h"
#include "sim/report/timeline/kernel_timeline.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/kernel_sensitivity.h"
#include "sim/units/user_error.h"

namespace ridgeline {

using nlohmann::ordered_json;

KernelLines::KernelLines(Gpu gpu, Software software, std::string_view engine, KernelLineOptions options)
    : gpu_(std::move(gpu)),
      software_(std::move(software)),
      options_(std::move(options)),
      ranges_(residual_ranges(), gpu_, software_.name),
      engine_(make_engine(engine, gpu_)),
      lowering_(gpu_, software_) {}

KernelLines::Answer KernelLines::answer(std::string_view given) const {
  const std::string text(given);
  ordered_json line;
  std::string timeline;
  try {
    check_json_depth(text);
    line = ordered_json::parse(text);
    const KernelCase kernel = kernel_case_from(nlohmann::json(line));
    const KernelPrediction prediction = predict_kernel(kernel, lowering_, *engine_);
    std::optional<Sensitivity> sensitivity;
    if (options_.timeline) timeline = kernel_timeline(prediction);
    if (options_.sensitivity) sensitivity = kernel_sensitivity(kernel, gpu_, software_, engine_->name());
    const OperationKind kind = kind_of(kernel.op, prediction.launches.at(prediction.longest));
    const Range range = ranges_.of(kind, prediction.time, engine_->name());
    const std::string reason = reason_of(range, kind);
    if (options_.text) {
      return {kernel_text(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace), prediction, range, reason),
              false, std::move(timeline)};
    }
    line["predicted"] = kernel_json(prediction, range, reason, sensitivity ? &*sensitivity : nullptr);
    if (options_.changed_hardware) line["predicted"]["hardware_changed"] = true;
  } catch (const ordered_json::exception& e) {
    if (!line.is_object()) line = ordered_json{{"line", text.substr(0, 200)}};
    line["error"] = fmt::format(
        "not a JSON object: {}; a kernel case is {{\"op\":\"mm\",\"params\":{{...}}}} (docs/kernel-cases.md)",
        json_mistake(e.what()));
  } catch (const UserError& e) {
    if (!line.is_object()) line = ordered_json{{"line", text.substr(0, 200)}};
    line["error"] = e.what();
  } catch (const std::invalid_argument& e) {
    line["error"] = e.what();
  }
  const bool mistake = line.contains("error");
  return {line.dump(-1, ' ', false, ordered_json::error_handler_t::replace), mistake,
          mistake ? std::string() : std::move(timeline)};
}

}  // namespace ridgeline
