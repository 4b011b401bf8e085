#include "sim/study/validation/step_validation.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/step_run.h"
#include "sim/study/validation/host_speed.h"
#include "sim/study/validation/measured_files.h"
#include "sim/study/validation/parallel_steps.h"
#include "sim/study/validation/published_runs.h"
#include "sim/study/validation/stated_software.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;

json inline_model(const json& m) {
  if (m["kind"] == "bert") {
    const bool large = m["size"] == "large";  // or sizes of its own
    const std::string head = m.value("head", "cls");
    const char* heads[][2] = {{"cls", "sequence-classification"},
                              {"qa", "question-answering"},
                              {"mlm", "masked-lm"},
                              {"pretraining", "pretraining"}};
    json out{{"family", "bert"},
             {"layers", m.value("L", large ? 24 : 12)},
             {"heads", m.value("h", large ? 16 : 12)},
             {"hidden", m.value("d", large ? 1024 : 768)},
             {"feed_forward", m.value("ff", large ? 4096 : 3072)},
             {"vocabulary", 30522},
             {"max_positions", 512},
             {"dropout", 0.1},
             {"activation", "gelu"}};
    for (const auto& [from, to] : heads)
      if (head == from) out["head"] = to;
    return out;
  }
  if (m["kind"] == "llama")
    return {{"family", "llama"}, {"layers", m["L"]},        {"heads", m["h"]},     {"key_value_heads", m["kv"]},
            {"hidden", m["d"]},  {"feed_forward", m["ff"]}, {"vocabulary", m["V"]}};
  return {{"family", "gpt2"},      {"layers", m["L"]},     {"heads", m["h"]},
          {"hidden", m["d"]},      {"vocabulary", m["V"]}, {"max_positions", m["T"]},
          {"dropout", m["drop"]},  {"bias", m["bias"]},    {"activation", m["gelu"] == "tanh" ? "gelu-tanh" : "gelu"},
          {"tie_embeddings", true}};
}

json inline_optimizer(const std::string& name) {
  if (name == "sgd") return {{"name", "sgd"}, {"implementation", "foreach"}};
  if (name == "sgdm") return {{"name", "sgd-momentum"}, {"implementation", "foreach"}};
  if (name == "adam") return {{"name", "adam"}, {"implementation", "foreach"}};
  if (name == "adafactor") return {{"name", "adafactor"}, {"implementation", "for-loop"}};
  return {{"name", "adamw"}, {"implementation", name == "forloop" ? "for-loop" : name}};
}

std::string precision_name(const std::string& name) {
  if (name == "fp16") return "amp-fp16";
  if (name == "bf16") return "amp-bf16";
  if (name == "purebf16") return "bf16";
  return name;
}

MeasuredStep own_measurement(const json& row, const std::string& source) {
  MeasuredStep m;
  m.name = row["name"];
  m.source = source;
  m.compiled = row.value("compile", false);
  m.transformer = row["model"]["kind"] != "unet" && row["model"]["kind"] != "mlp";
  m.step_time = Seconds{row["step_ms_median"].get<double>() * 1e-3};
  m.host_time = Seconds{row["host_ms"].get<double>() * 1e-3};
  m.gpu_busy = Seconds{row["profiled"]["gpu_busy_ms"].get<double>() * 1e-3};
  m.kernel_count = row["profiled"]["kernels"].get<std::int64_t>();
  m.peak_allocated = row["peak"]["allocated"].get<std::int64_t>();
  m.peak_reserved = row["peak"]["reserved"].get<std::int64_t>();
  m.device_used = row["stage"]["end"]["device_used"].get<std::int64_t>();
  return m;
}

/// The group of a file's steps: its folder, with its own name where that is not "steps".
std::string group_of(const std::string& name) {
  const std::string stem = name.substr(0, name.find(".jsonl"));
  return stem.ends_with("/steps") ? stem.substr(0, stem.size() - std::string_view("/steps").size()) : stem;
}

/// Beside a host that nobody measured, a row whose host was timed by parts says how fast it was.
void add_speed_of_host(ScenarioSource& source, const json& row, Session& session) {
  const Scenario scenario = load_scenario(source);
  if (scenario.host.known || !row.contains("host_parts_ms")) return;
  const LikelyScale likely = likely_scale(scale_of_lists(session, scenario, row["host_parts_ms"]), scenario.host);
  source.overrides.push_back({"host.scale", fmt::format("{}", likely.scale), ""});
  source.overrides.push_back({"host.spread", fmt::format("{} %", 100.0 * likely.spread), ""});
}

void add_own(std::vector<ValidatedStep>& out, const MeasuredFile& file, std::string_view only) {
  const MeasuringMachine& machine = file.machine;
  if (!only.empty() && machine.hardware != only) return;
  Session session;
  for_each_row(file, [&](const json& row) {
    if (!row.contains("step_ms_median")) return;
    auto scenario_source = scenario_of_measured_step(row, machine.hardware);
    if (!scenario_source) return;
    MeasuredStep measured = own_measurement(row, group_of(file.name));
    measured.seen_by = file.seen_by;
    if (machine.host != "default") scenario_source->overrides.push_back({"host", machine.host, ""});
    add_speed_of_host(*scenario_source, row, session);
    if (machine.host == "h100-virtual-machine") {
      const auto fitted = steps_that_fit_the_h100_host();
      measured.host_fitted = std::find(fitted.begin(), fitted.end(), measured.name) != fitted.end();
      if (measured.host_fitted) measured.seen_by = "scale of the host";
    }
    out.push_back({std::move(measured), load_scenario(*scenario_source), {}});
  });
}

/// Steps of one and several GPUs of one server, each with the speed its host had then.
void add_parallel(std::vector<ValidatedStep>& out, const MeasuredFile& file, std::string_view only) {
  if (!only.empty() && file.machine.hardware != only) return;
  for (ParallelStep& one : load_parallel_steps(file))
    out.push_back({std::move(one.measured), std::move(one.scenario), {}});
}

/// The stack a published row states, in its own words or in its id ("-pt2.3.0a0"). Where neither names a version: that
/// of 2023 where the row says so, today's for the years since 2023, that of the years before for the rest.
std::string software_of_step(const json& row) {
  const std::string words = row.value("software", "") + " " + row.value("id", "");
  const auto has = [&](const char* mark) { return words.find(mark) != std::string::npos; };
  const bool recent = has("PyTorch 2") || has("2023-") || has("2024-");
  return software_stated_in(words, has("not stated") ? "pytorch-2.0" : recent ? "pytorch-2.11" : "pytorch-1.10");
}

/// Published steps: those of a shipped GPU with an absolute time and a scenario in our vocabulary, as runs.yaml beside
/// them completes it.
void add_published(std::vector<ValidatedStep>& out, const MeasuredFile& file, const PublishedRuns& runs,
                   std::string_view only) {
  for_each_row(file, [&](const json& row) {
    if (row["kind"] != "absolute" || row.value("trust", "low") == std::string("low")) return;
    json scenario = row["scenario"];
    if (row.contains("simulate_as") && row["simulate_as"].is_string()) scenario["hardware"] = row["simulate_as"];
    const bool several = scenario.contains("cluster");
    if (!only.empty() && (several ? scenario["cluster"]["gpu"] : scenario["hardware"]) != only) return;
    if (!scenario.contains("software")) scenario["software"] = software_of_step(row);
    ScenarioSource source;
    source.text = scenario.dump();
    source.text_name = row["id"];
    const PublishedRuns::Run run = runs.run_of(source.text_name);
    source.overrides = run.overrides;
    const json overrides = row.value("overrides", json::object());
    for (const auto& [key, value] : overrides.items()) source.overrides.push_back({key, value.get<std::string>(), ""});
    if (!scenario.contains("host") && file.machine.host != "default")
      source.overrides.push_back({"host", file.machine.host, ""});
    MeasuredStep m;
    m.name = row["id"];
    m.seen_by = file.seen_by;
    m.publisher = publisher_of(row.value("source", ""));
    m.source = several ? "several GPUs, public" : "public";
    if (file.machine.name != "published") m.source += ", " + file.machine.name;
    if (!run.comparable) m.source += ", not comparable";
    m.compiled = scenario.value("training", json::object()).value("compile", false);
    const json& measured = row["measured"];
    if (measured.contains("step_time_s")) m.step_time = Seconds{measured["step_time_s"].get<double>()};
    if (measured.contains("device_used_bytes")) m.device_used = measured["device_used_bytes"].get<std::int64_t>();
    if (measured.contains("peak_allocated_bytes"))
      m.peak_allocated = measured["peak_allocated_bytes"].get<std::int64_t>();
    try {
      out.push_back({m, load_scenario(source), {}});
    } catch (const UserError&) {
      return;  // a GPU, precision or model outside our vocabulary
    }
  });
}

}  // namespace

std::string publisher_of(std::string_view source) { return std::string(source.substr(0, source.find_first_of("@, "))); }

std::span<const std::string_view> steps_that_fit_the_h100_host() {
  static constexpr std::array<std::string_view, 8> kNames{
      "bert-base-b1-t128-fp32",      "bert-base-b8-t128-fp32-sgdm", "bert-base-b8-t512-bf16amp-mlm",
      "gpt2-b8-fp16amp-flash-fused", "gpt2-b8-purebf16-flash",      "gpt2-xl-b1-bf16-flash-ckpt",
      "llama-b4-bf16amp-sdpa",       "nanogpt-char-b12-t64"};
  return kNames;
}

std::optional<ScenarioSource> scenario_of_measured_step(const json& row, const std::string& hardware) {
  const json& m = row["model"];
  if (m["kind"] != "bert" && m["kind"] != "gpt" && m["kind"] != "llama") return std::nullopt;
  const bool sdpa = m["kind"] == "gpt" ? m["flash"].get<bool>() : m.value("attn", "sdpa") == std::string("sdpa");
  json training{{"micro_batch", row["B"]},
                {"sequence_length", row["T"]},
                {"gradient_accumulation", row["accum"]},
                {"precision", precision_name(row["prec"])},
                {"tf32", row["prec"] != "fp32"},
                {"cudnn_tf32", row["prec"] != "fp32"},
                {"attention", sdpa ? "sdpa" : "eager"},
                {"optimizer", inline_optimizer(row["opt"])},
                {"compile", row.value("compile", false)},
                {"activation_checkpointing", m.value("ckpt", false) ? "block" : "none"}};
  if (row.contains("clip") && row["clip"].is_number()) training["gradient_clipping"] = row["clip"];
  ScenarioSource source;
  source.text =
      json{{"title", row["name"]}, {"hardware", hardware}, {"model", inline_model(m)}, {"training", training}}.dump();
  source.text_name = row["name"];
  return source;
}

std::vector<ValidatedStep> own_steps(const std::string& folder, std::string_view hardware) {
  const MeasurementIndex index(folder);
  std::vector<ValidatedStep> out;
  for (const MeasuredFile* file : index.of_kind("steps")) add_own(out, *file, hardware);
  return out;
}

std::vector<ValidatedStep> validate_steps(const std::string& folder, std::string_view hardware,
                                          std::string_view engine) {
  const MeasurementIndex index(folder);
  std::vector<ValidatedStep> out;
  for (const MeasuredFile* file : index.of_kind("steps")) add_own(out, *file, hardware);
  for (const MeasuredFile* file : index.of_kind("parallel-steps")) add_parallel(out, *file, hardware);
  const std::size_t own = out.size();
  const PublishedRuns runs(index.file("public/runs.yaml").path.string());
  for (const MeasuredFile* file : index.of_kind("published-steps")) add_published(out, *file, runs, hardware);
  std::vector<char> ran(out.size(), true);
  Session session;
  tbb::parallel_for(std::size_t{0}, out.size(), [&](std::size_t i) {
    try {
      out[i].predicted = StepRun(session, out[i].scenario, engine).prediction();
    } catch (const UserError&) {
      if (i < own) throw;
      ran[i] = false;  // a GPU, precision or model outside our vocabulary
    }
  });
  std::vector<ValidatedStep> steps;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (ran[i]) steps.push_back(std::move(out[i]));
  return steps;
}

}  // namespace ridgeline
