#include "sim/report/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/output/terminal.h"
#include "sim/report/json/prediction_json.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/report/text/number_words.h"
#include "sim/units/parse.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

std::string batch_words(const FittingBatch& batch) {
  const StepPrediction& step = batch.prediction.step;
  return fmt::format("micro-batch {} x {} a step: {} a step, {} samples/s, {} of the device", batch.micro_batch,
                     batch.gradient_accumulation, to_string(step.time), four_digits(step.samples_per_s),
                     gib(batch.prediction.memory.device_used));
}

ordered_json shortage_json(const MemoryPrediction& memory) {
  const MemoryShortage& oom = *memory.out_of_memory;
  ordered_json held;
  for (std::size_t i = 0; i < kCategories; ++i) held[std::string(kCategoryNames[i])] = oom.held[i];
  return {{"op", oom.op},
          {"phase", phase_name(oom.phase)},
          {"layer", oom.layer},
          {"category", kCategoryNames[static_cast<std::size_t>(oom.category)]},
          {"largest_category", kCategoryNames[largest_category(oom)]},
          {"requested_bytes", oom.requested_bytes},
          {"missing_bytes", oom.missing_bytes},
          {"needed_bytes", memory.needed},
          {"short_bytes", std::max<std::int64_t>(0, memory.needed - memory.capacity)},
          {"held", std::move(held)}};
}

ordered_json batch_json(const FittingBatch& batch) {
  const ordered_json whole = prediction_json(batch.prediction);
  return {{"micro_batch", batch.micro_batch},
          {"gradient_accumulation", batch.gradient_accumulation},
          {"batch", batch.micro_batch * batch.gradient_accumulation},
          {"step", whole["step"]},
          {"memory", whole["memory"]}};
}

}  // namespace

std::string fit_text(const FitResult& r, Seconds search_time) {
  std::string out = fmt::format("{}\n{}, {}\n\n", r.scenario, r.hardware, gib(r.capacity));
  constexpr std::string_view kMargin = "                ";
  if (r.largest) {
    write_wrapped(out, "  fits          ", batch_words(*r.largest));
    if (r.sure_micro_batch < r.largest->micro_batch)
      write_wrapped(out, "                ",
                    r.sure_micro_batch > 0 ? fmt::format("with the spread of such predictions to spare: micro-batch {}",
                                                         r.sure_micro_batch)
                                           : "with the spread of such predictions not even one surely fits");
    if (!r.keeps_batch) {
      write_wrapped(out, kMargin,
                    fmt::format("the scenario's batch of {} is {}", r.asked_batch,
                                r.largest->micro_batch > r.asked_batch ? "smaller than that" : "no multiple of it"));
      if (r.same_batch) write_wrapped(out, "  same batch    ", batch_words(*r.same_batch));
    }
  } else {
    out += "  fits          NOT EVEN ONE SEQUENCE\n";
  }
  if (r.failing && r.failing->out_of_memory) {
    write_wrapped(
        out, "  limited by    ",
        fmt::format("micro-batch {} runs out {}", r.failing_micro_batch, shortage_words(*r.failing->out_of_memory)));
    write_wrapped(
        out, kMargin,
        fmt::format("it would take {}, {} more than there is; most of it {}", gib(r.failing->needed),
                    to_string(Bytes{std::max(0.0, static_cast<double>(r.failing->needed - r.failing->capacity))}),
                    words(kCategoryNames[largest_category(*r.failing->out_of_memory)])));
  } else {
    out += "  limited by    nothing in reach: the most tokens of a forward pass fit\n";
  }
  if (!r.would_fit.empty()) write_wrapped(out, "  would fit     ", "with " + as_sets(r.would_fit));
  if (!r.largest && r.would_fit.empty()) out += "  would fit     with none of the changes tried\n";
  if (!r.monotone) write_wrapped(out, "  note          ", "memory does not grow evenly: some smaller batch fails");
  std::string line = fmt::format("  search        {} batches in {}:", r.trials.size(), to_string(search_time));
  for (const FitTrial& trial : r.trials) {
    const std::string text = fmt::format(" {}{}", trial.micro_batch, trial.fits ? "" : " (no)");
    if (line.size() + text.size() > page_width()) {
      out += line + "\n";
      line = std::string(15, ' ');
    }
    line += text;
  }
  return out + line + "\n";
}

ordered_json fit_json(const FitResult& r, Seconds search_time) {
  ordered_json out{{"scenario", r.scenario},
                   {"hardware", r.hardware},
                   {"capacity_bytes", r.capacity},
                   {"fits", r.largest.has_value()},
                   {"asked_batch", r.asked_batch}};
  if (r.largest) {
    out.update(batch_json(*r.largest));
    out["sure_micro_batch"] = r.sure_micro_batch;
    out["keeps_batch"] = r.keeps_batch;
    if (r.same_batch) out["same_batch"] = batch_json(*r.same_batch);
  } else {
    out["micro_batch"] = 0;
    out["would_fit"] = r.would_fit;
  }
  if (r.failing && r.failing->out_of_memory) {
    out["limit"] = {{"micro_batch", r.failing_micro_batch}};
    out["limit"].update(shortage_json(*r.failing));
  }
  out["monotone"] = r.monotone;
  out["search_s"] = search_time.value();
  out["trials"] = ordered_json::array();
  for (const FitTrial& trial : r.trials)
    out["trials"].push_back({{"micro_batch", trial.micro_batch},
                             {"gradient_accumulation", trial.gradient_accumulation},
                             {"fits", trial.fits},
                             {"needed_bytes", trial.needed}});
  return out;
}

}  // namespace ridgeline
