// The public library over the simulator: questions in, values and texts out, mistakes as one type.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "revision.h"
#include "ridgeline/ridgeline.h"
#include "sim/answer/full_prediction.h"
#include "sim/answer/step_detail.h"
#include "sim/config/config_error.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/recognition/recognise.h"
#include "sim/report/answer_report.h"
#include "sim/report/comparison_report.h"
#include "sim/report/fit_report.h"
#include "sim/report/history_report.h"
#include "sim/report/kernel_lines.h"
#include "sim/report/page/page.h"
#include "sim/report/plan_report.h"
#include "sim/report/sweep_report.h"
#include "sim/report/text/names.h"
#include "sim/scenario/scenario_file.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/plan/plan_search.h"
#include "sim/study/sweep/run_sweep.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/trace/read_recording.h"
#include "sim/units/budget.h"
#include "sim/units/lazy.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

thread_local std::stop_token stop_of_thread;

/// What escapes from the simulator as what the library throws.
template <class Work>
auto translated(const Work& work) {
  try {
    const Budget budget({.memory = memory_budget()}, stop_of_thread);
    const UnderBudget under(&budget);
    return work();
  } catch (const config::ConfigError& error) {
    if (const std::string sentence = recognition::about_file_of(error.what()); !sentence.empty())
      throw Mistake(sentence, error.origin().name ? *error.origin().name : "", 0, 0, "");
    throw Mistake(error.what(), error.origin().name ? *error.origin().name : "", error.origin().line,
                  error.origin().column, error.key());
  } catch (const UserError& error) {
    const std::string sentence = recognition::about_file_of(error.what());
    throw Mistake(sentence.empty() ? error.what() : sentence, "", 0, 0, "");
  } catch (const OverBudget& error) {
    throw Mistake(error.what(), "", 0, 0, "");
  } catch (const Cancelled&) {
    throw Stopped();
  }
}

std::string tool() { return "ridgeline " RIDGELINE_VERSION ", revision " RIDGELINE_REVISION; }

ScenarioSource source_of(const Question& question) {
  ScenarioSource source;
  if (!question.file.empty() && !question.text.empty()) throw UserError("a question has a file or a text, not both");
  if (!question.file.empty()) {
    source.file = scenario_file(question.file);
    source.recording = trace::looks_like_recording(*source.file);
  }
  source.text = question.text;
  if (!question.text.empty()) source.text_name = "text of the question";
  for (const std::string& change : question.set) source.overrides.push_back(config::parse_override(change));
  return source;
}
Scenario scenario_of(const Question& question, Descriptions& descriptions) {
  return load_scenario(source_of(question), descriptions);
}

Step step_of(const StepPrediction& s) {
  return {s.time,          s.low,          s.high, s.gpu_busy, s.host_time,     s.kernel_count,
          s.samples_per_s, s.tokens_per_s, s.mfu,  s.power,    s.energy.energy, s.validated};
}
Memory memory_of(const MemoryPrediction& m) {
  const auto bytes = [](std::int64_t n) { return Bytes{static_cast<double>(n)}; };
  return {m.source != MemorySource::unknown,
          bytes(m.peak_allocated),
          bytes(m.peak_reserved),
          bytes(m.device_used),
          bytes(m.capacity),
          m.fits};
}
KernelTable kernels_of(const Prediction& p) {
  KernelTable table;
  for (const KernelGroup& group : p.kernels) {
    table.name.push_back(group.name);
    table.shape.push_back(group.shape);
    table.op.push_back(group.op);
    table.limiter.emplace_back(name_of(group.limiter));
    table.count.push_back(group.count);
    table.time_s.push_back(group.time.value());
    table.flops.push_back(group.flops);
    table.read_bytes.push_back(group.read_bytes);
    table.written_bytes.push_back(group.written_bytes);
    table.dram_bytes.push_back(group.dram_bytes);
    table.l2_bytes.push_back(group.l2_bytes);
  }
  return table;
}
TimelineTable timeline_of(const StepDetail& detail) {
  TimelineTable table;
  for (const KernelKind& kind : detail.kinds) {
    table.names.push_back(kind.name);
    table.shapes.push_back(kind.shape);
  }
  for (const LaunchSpan& span : every_span(detail)) {
    table.kind.push_back(static_cast<std::int32_t>(span.kind));
    table.phase.push_back(static_cast<std::int32_t>(span.phase));
    table.layer.push_back(span.layer);
    table.issued_s.push_back(span.issued.value());
    table.start_s.push_back(span.start.value());
    table.end_s.push_back(span.end.value());
  }
  return table;
}
MemoryTable memory_over_time_of(const StepDetail& detail) {
  MemoryTable table;
  for (const MemoryPoint& point : detail.memory) {
    table.at_s.push_back(point.at.value());
    table.allocated.push_back(point.allocated);
    table.reserved.push_back(point.reserved);
  }
  return table;
}

}  // namespace

Mistake::Mistake(const std::string& what, std::string file, int line, int column, std::string key)
    : std::runtime_error(what), file_(std::move(file)), key_(std::move(key)), line_(line), column_(column) {}
Mistake::~Mistake() = default;
UntilStopped::UntilStopped(std::stop_token stop) : before_(std::exchange(stop_of_thread, std::move(stop))) {}
UntilStopped::~UntilStopped() { stop_of_thread = std::move(before_); }

const char* Stopped::what() const noexcept { return "stopped"; }
Stopped::~Stopped() = default;

struct Simulator::Shared {
  mutable Session session;
};

struct Answer::Parts {
  std::shared_ptr<Session> session;  ///< outlives the simulator where the answer does
  StepRun run;
  Prediction prediction;
  Step step;
  Memory memory;
  Lazy<StepDetail> detail;
  Lazy<KernelTable> kernels;
  Lazy<TimelineTable> timeline;
  Lazy<MemoryTable> memory_over_time;

  Parts(std::shared_ptr<Session> shared, Scenario scenario, const Question& question)
      : session(std::move(shared)),
        run(*session, std::move(scenario), question.engine),
        prediction(full_prediction(run, {.advice = question.advice, .sensitivity = question.sensitivity})),
        step(step_of(prediction.step)),
        memory(memory_of(prediction.memory)) {}
  [[nodiscard]] const StepDetail& made_detail() const {
    return detail.get([&] { return step_detail(run); });
  }
};

Answer::Answer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Answer::~Answer() = default;
Answer::Answer(const Answer&) = default;
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(const Answer&) = default;
Answer& Answer::operator=(Answer&&) noexcept = default;

const std::string& Answer::title() const { return parts_->prediction.scenario; }
const std::string& Answer::hardware() const { return parts_->prediction.hardware; }
const Step& Answer::step() const { return parts_->step; }
const Memory& Answer::memory() const { return parts_->memory; }
const std::vector<std::string>& Answer::notes() const { return parts_->prediction.notes; }
const KernelTable& Answer::kernels() const {
  return parts_->kernels.get([&] { return kernels_of(parts_->prediction); });
}
const TimelineTable& Answer::timeline() const {
  return parts_->timeline.get([&] { return translated([&] { return timeline_of(parts_->made_detail()); }); });
}
const MemoryTable& Answer::memory_over_time() const {
  return parts_->memory_over_time.get(
      [&] { return translated([&] { return memory_over_time_of(parts_->made_detail()); }); });
}
std::string Answer::json() const {
  return translated([&] { return text_of(answer_json(parts_->run, parts_->prediction, {}, tool())); });
}
std::string Answer::text() const {
  return translated([&] { return answer_text(parts_->run, parts_->prediction, Notes::folded, {}); });
}
std::string Answer::html() const {
  return translated([&] {
    const std::string title = parts_->run.scenario().title + " on " + parts_->run.scenario().gpu.title;
    return page({{"generator", std::string("ridgeline ") + version()},
                 {"title", title},
                 {"parts", nlohmann::ordered_json::array({answer_page_part(parts_->run, parts_->prediction, title)})}});
  });
}
std::string Answer::chrome_trace() const {
  return translated([&] { return answer_timeline(parts_->run); });
}
std::string Answer::memory_snapshot() const {
  return translated([&] { return answer_memory_snapshot(parts_->run); });
}

Simulator::Simulator() : shared_(std::make_shared<Shared>()) {}
Simulator::~Simulator() = default;

Answer Simulator::predict(const Question& question, std::stop_token stop) const {
  const UntilStopped until(stop.stop_possible() ? std::move(stop) : stop_of_thread);
  return translated([&] {
    std::shared_ptr<Session> session(shared_, &shared_->session);
    Scenario scenario = scenario_of(question, session->descriptions());
    return Answer(std::make_shared<const Answer::Parts>(std::move(session), std::move(scenario), question));
  });
}

std::string Simulator::compare(std::span<const Question> questions, std::span<const std::string> labels) const {
  return translated([&] {
    if (!labels.empty() && labels.size() != questions.size())
      throw UserError("a comparison has a label for each question, or none");
    std::vector<Scenario> scenarios;
    std::vector<std::string> names(labels.begin(), labels.end());
    for (const Question& question : questions) {
      scenarios.push_back(scenario_of(question, shared_->session.descriptions()));
      if (labels.empty()) names.push_back(scenarios.back().title + " on " + scenarios.back().gpu.title);
    }
    const std::string engine = questions.empty() ? "analytic" : questions.front().engine;
    return text_of(comparison_json(ridgeline::compare(shared_->session, scenarios, names, engine)));
  });
}

std::string Simulator::fit(const Question& question) const {
  return translated([&] {
    const Scenario scenario = scenario_of(question, shared_->session.descriptions());
    return text_of(fit_json(fit_batch(shared_->session, scenario, question.engine), Seconds{}));
  });
}

std::string Simulator::sweep(const std::string& file, int threads) const {
  return translated([&] {
    const Sweep sweep = load_sweep(scenario_file(file));
    check_axes(sweep);
    SweepRunOptions options;
    options.threads = threads;
    const std::vector<SweepPoint> points = run_sweep(sweep, sweep.points(), options);
    keep_budget("the sweep");  // one that is stopped has some of its points
    return text_of(sweep_json(sweep, points));
  });
}

std::string Simulator::plan(const Question& question, std::span<const std::int64_t> gpus, std::int64_t batch,
                            int threads) const {
  return translated([&] {
    PlanRequest request{.source = source_of(question), .gpus = {gpus.begin(), gpus.end()}};
    std::sort(request.gpus.begin(), request.gpus.end());
    if (batch != 0) request.batch = batch;
    request.engine = question.engine;
    const PlanQuestion asked = plan_question(request, shared_->session, threads);
    Ranks alone;
    const PlanSearch search = search_plan(asked, shared_->session, alone, {.threads = threads});
    keep_budget("the plan");
    check_that_some_fit(asked, search);
    return text_of(plan_json(asked, search, answer_plan(asked, search, shared_->session, threads)));
  });
}

std::string Simulator::kernels(std::string_view cases, const std::string& hardware, std::span<const std::string> set,
                               const std::string& engine, const std::string& software) const {
  return translated([&] {
    std::vector<config::Override> changes;
    for (const std::string& change : set) changes.push_back(config::parse_override(change));
    const KernelLines lines(load_gpu(hardware, changes), load_software(software), engine,
                            {.changed_hardware = !set.empty(), .timeline = {}});
    std::string answers;
    while (!cases.empty()) {
      const std::string_view line = cases.substr(0, cases.find('\n'));
      cases.remove_prefix(std::min(cases.size(), line.size() + 1));
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) answers += lines.answer(line).text + "\n";
    }
    return answers;
  });
}

std::string Simulator::memory(const std::string& file, const std::string& settings, const std::string& capacity) const {
  return translated([&] { return history_json({file, settings, capacity}).dump(2); });
}

std::vector<std::string> Simulator::hardware() const {
  return translated([] { return hardware_names(); });
}
std::vector<std::string> Simulator::models() const {
  return translated([] { return model_names(); });
}

const char* version() { return RIDGELINE_VERSION; }

}  // namespace ridgeline
