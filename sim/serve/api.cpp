#include "sim/serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "sim/answer/full_prediction.h"
#include "sim/answer/step_detail.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/network/load_cluster.h"
#include "sim/report/answer_report.h"
#include "sim/report/json/launch_json.h"
#include "sim/report/kernel_lines.h"
#include "sim/report/page/lab_pieces.h"
#include "sim/report/page/page_data.h"
#include "sim/report/text/collective_lines.h"
#include "sim/serve/asked.h"
#include "sim/serve/assets.h"
#include "sim/study/ladder.h"
#include "sim/units/budget.h"
#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"
#include "sim/workload/host_class.h"

namespace ridgeline::serve {
namespace {

using nlohmann::ordered_json;

constexpr int kQuestionsADescription = 500;
constexpr std::size_t kMemoryPoints =
    600;  // as many as a picture has pixels for, about: they are drawn at every change
constexpr SessionLimits kServedSession{.traces = 16, .trace_bytes = 256u << 20, .gpus = 24, .kernels_a_gpu = 1u << 14};

const std::vector<std::string> kPaths{"predict",     "compare", "fit",       "sweep",    "plan",        "kernels",
                                      "collectives", "memory",  "exercises", "hardware", "clusters",    "hosts",
                                      "software",    "models",  "scenarios", "schema",   "microkernels"};

Reply mistake_reply(const UserError& error) {
  ordered_json said{{"message", error.what()}};
  if (const auto* config = dynamic_cast<const config::ConfigError*>(&error)) {
    if (config->origin().name) said["file"] = *config->origin().name;
    if (config->origin().line > 0) said["line"] = config->origin().line;
    if (config->origin().column > 0) said["column"] = config->origin().column;
    if (!config->key().empty()) said["key"] = config->key();
    said["reason"] = config->message();
  }
  return {.status = 400, .body = text_of({{"error", std::move(said)}})};
}

/// What a large question has freed is there for the next ones, and for other programs.
class GivesBack {
 public:
  GivesBack(const Budget& budget, std::int64_t large) : budget_(budget), large_(large) {}
  ~GivesBack() {
    if (budget_.grown() > large_) give_memory_back();
  }
  GivesBack(const GivesBack&) = delete;
  GivesBack& operator=(const GivesBack&) = delete;

 private:
  const Budget& budget_;
  std::int64_t large_;
};

constexpr std::array<std::pair<std::string_view, bool PagePieces::*>, 6> kPieces{{{"groups", &PagePieces::groups},
                                                                                  {"spans", &PagePieces::spans},
                                                                                  {"memory", &PagePieces::memory},
                                                                                  {"blocks", &PagePieces::blocks},
                                                                                  {"power", &PagePieces::power},
                                                                                  {"caches", &PagePieces::caches}}};

/// "a,b" to its parts.
std::vector<std::string> names_of(std::string_view names) {
  std::vector<std::string> parts;
  while (!names.empty()) {
    const std::string_view one = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), one.size() + 1));
    parts.emplace_back(one);
  }
  return parts;
}

/// "groups,spans" to pieces of a page.
PagePieces pieces_of(const std::string& names) {
  PagePieces pieces{false, false, false};
  for (const std::string& one : names_of(names)) {
    const auto wanted = std::find_if(kPieces.begin(), kPieces.end(), [&](const auto& p) { return p.first == one; });
    if (wanted == kPieces.end())
      throw UserError(fmt::format(
          "show: expected groups, spans, memory, blocks, power or caches with commas between, got '{}'", one));
    pieces.*(wanted->second) = true;
  }
  return pieces;
}

/// Long keys of the answer that a view does not show.
std::vector<std::string> left_out_of(const std::string& names) {
  std::vector<std::string> keys = names_of(names);
  for (const std::string& key : keys)
    if (key != "kernels" && key != "modules" && key != "sensitivity_keys")
      throw UserError(
          fmt::format("leave_out: expected kernels, modules or sensitivity_keys with commas between, got '{}'", key));
  return keys;
}

ordered_json page_of(const StepRun& run, const StepDetail& detail, const PagePieces& pieces) {
  ordered_json page = page_pieces(detail, run.scenario().gpu, pieces, kMemoryPoints);
  if (pieces.blocks) page["blocks"] = blocks_json(run);
  if (pieces.power) page["power"] = power_json(run);
  if (pieces.caches) page["caches"] = caches_json(run, detail);
  if (pieces.spans && run.pipeline() != nullptr) page["lanes"] = lanes_json(*run.pipeline());
  return page;
}

/// The kernel and shape that takes most of the step.
std::uint64_t longest_kind(const StepDetail& detail) {
  std::vector<Seconds> of(detail.kinds.size());
  for (const LaunchSpan& span : detail.spans) of[span.kind] += span.end - span.start;
  return static_cast<std::uint64_t>(std::max_element(of.begin(), of.end()) - of.begin());
}

ordered_json kernel_of(const StepRun& run, const StepDetail& detail, std::uint64_t index, const PagePieces& pieces) {
  if (index >= detail.kinds.size())
    throw UserError(fmt::format("kernel: the step has kernels 0 to {}, got {}", detail.kinds.size() - 1, index));
  ordered_json kernel{{"group", index}};
  kernel.update(launch_json(detail.kinds[index], run.scenario().gpu));
  if (pieces.caches) kernel["caches"] = kernel_caches_json(run, detail, static_cast<std::uint32_t>(index));
  return kernel;
}

/// The answers of the lines of a body, a line each.
template <typename Answer>
Reply reply_by_lines(std::string_view body, const char* what, const Answer& answer) {
  std::string answers;
  while (!body.empty()) {
    keep_budget("answering cases");
    const std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(std::min(body.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) answers += answer(line) + "\n";
  }
  if (answers.empty()) throw UserError(fmt::format("no {} in the body, expected one JSON object a line", what));
  return {.type = "application/x-ndjson", .body = std::move(answers)};
}

/// Ways to run what does not fit, each predicted, with the changes that lead to it.
ordered_json ladder_json(const StepRun& run) {
  ordered_json rows = ordered_json::array();
  if (run.memory().runs) return rows;
  for (const LadderRow& row : ladder_of(run)) {
    ordered_json one{{"label", row.label},      {"adds", row.adds},
                     {"changes", row.all},      {"needed_bytes", row.memory.needed},
                     {"runs", row.memory.runs}, {"fits", row.memory.fits}};
    if (row.step) {
      one["time_s"] = row.step->time.value();
      one["tokens_per_s"] = row.step->tokens_per_s;
    }
    rows.push_back(std::move(one));
  }
  return rows;
}

}  // namespace

Reply error_reply(int status, const std::string& message) {
  return {.status = status, .body = text_of({{"error", {{"message", message}}}})};
}

ScenarioSource source_of(const std::string& text, const std::vector<std::string>& sets, bool datasheet) {
  ScenarioSource source;
  source.text = text;
  source.text_name = "scenario";
  for (const std::string& change : sets) source.overrides.push_back(config::parse_override(change));
  if (datasheet) source.numbers = Numbers::datasheet;
  return source;
}

Lane lane_of(const Request& request) {
  constexpr std::array<std::string_view, 4> kStudies{"/api/compare", "/api/fit", "/api/sweep", "/api/plan"};
  constexpr std::array<std::string_view, 6> kAnswers{"/api/predict", "/api/kernels",   "/api/collectives",
                                                     "/api/memory",  "/api/exercises", "/api/microkernels"};
  const std::string_view target = request.target;
  const auto is_of = [path = target.substr(0, target.find('?'))](std::string_view one) {
    return path.starts_with(one);  // /api/exercises/12
  };
  if (std::any_of(kStudies.begin(), kStudies.end(), is_of)) return Lane::studies;
  if (std::none_of(kAnswers.begin(), kAnswers.end(), is_of)) return Lane::shipped;
  return target.find("engine=simulate") == std::string_view::npos ? Lane::answers : Lane::studies;
}

Api::Api(ApiOptions options)
    : options_(std::move(options)), session_(kServedSession), descriptions_(std::make_shared<Descriptions>()) {}

std::shared_ptr<Descriptions> Api::descriptions() {
  const std::lock_guard lock(describing_);
  if (++described_ > kQuestionsADescription) {
    descriptions_ = std::make_shared<Descriptions>();
    described_ = 0;
  }
  return descriptions_;
}

Reply Api::admit(const Request& request) const {
  std::string token;
  try {
    const Target target = parse_target(request.target);
    if (asset(target.path)) {  // the page itself holds nothing, and a link may lead to it
      if (options_.guard.knows_host(request.host)) return {};
      return error_reply(403, fmt::format("the header Host names '{}', which is not this server", request.host));
    }
    token = target.get("token");
  } catch (const UserError& error) {
    return error_reply(400, error.what());
  }
  if (const std::string why = options_.guard.refusal(request, token); !why.empty()) return error_reply(403, why);
  return {};
}

Reply Api::answer(const Request& request, std::stop_token stop, const OnProgress& progress) {
  if (Reply refused = admit(request); refused.status != 200) return refused;
  try {
    Asked asked{request, parse_target(request.target), std::move(stop), progress};
    if (const std::string client = asked.target.get("client"); !client.empty()) {
      std::stop_source mine = newest_.begin(client, asked.target.number("sequence").value_or(0));
      const std::stop_callback given_up(asked.stop, [&mine] { mine.request_stop(); });
      const Asked stoppable{request, asked.target, mine.get_token(), progress};
      return within_budget(stoppable);
    }
    return within_budget(asked);
  } catch (const UserError& error) {
    return mistake_reply(error);
  } catch (const Cancelled&) {
    return error_reply(409, "given up: a later question was asked");
  } catch (const OverBudget& error) {
    return error_reply(422, error.what());
  } catch (const std::bad_alloc&) {
    return error_reply(422, "the question needs more memory than this server has");
  } catch (const std::exception& error) {
    return error_reply(500, fmt::format("this is our bug, please report it: {}", error.what()));
  }
}

Reply Api::within_budget(const Asked& asked) {
  const BudgetLimits limits{options_.memory, options_.process_memory,
                            lane_of(asked.request) == Lane::studies ? options_.time_of_study : options_.time_of_answer};
  const Budget budget(limits, asked.stop);
  const UnderBudget under(&budget);
  const GivesBack gives_back(budget, options_.memory / 8);
  return route(asked);
}

Reply Api::route(const Asked& asked) {
  using Answer = Reply (Api::*)(const Asked&);
  static const std::map<std::string, Answer, std::less<>> kAsked{{"/api/predict", &Api::predict},
                                                                 {"/api/compare", &Api::compare},
                                                                 {"/api/fit", &Api::fit},
                                                                 {"/api/sweep", &Api::sweep},
                                                                 {"/api/plan", &Api::plan},
                                                                 {"/api/kernels", &Api::kernels},
                                                                 {"/api/collectives", &Api::collectives}};
  const std::string& path = asked.target.path;
  if (const auto found = kAsked.find(path); found != kAsked.end()) {
    if (asked.request.method == "POST") return (this->*found->second)(asked);
    Reply reply = error_reply(405, fmt::format("{}: ask with POST, the question in the body", path));
    reply.allow = "POST";
    return reply;
  }
  if (asked.request.method != "GET" && asked.request.method != "HEAD") {
    Reply reply = error_reply(405, fmt::format("{}: ask with GET", path));
    reply.allow = "GET, HEAD";
    return reply;
  }
  if (const std::optional<Asset> found = asset(path)) {
    if (found->text.empty())
      return error_reply(503, "this program was built without npm's packages, which make the lab page; /api answers");
    return {.type = found->type, .body = std::string(found->text)};
  }
  if (std::optional<Reply> reply = library_reply(asked.target)) return std::move(*reply);
  std::string message = fmt::format("there is nothing at {}", path);
  if (path.starts_with("/api/")) {
    const std::string meant = meant_name(path.substr(5), kPaths);
    if (!meant.empty()) message += fmt::format("; did you mean /api/{}?", meant);
  }
  return error_reply(404, message);
}

Reply Api::predict(const Asked& asked) {
  const Target& t = asked.target;
  asked.takes({"set", "engine", "advice", "sensitivity", "memory_report", "ladder", "datasheet", "show", "kernel",
               "leave_out"});
  const std::shared_ptr<Descriptions> known = descriptions();
  const StepRun run(session_, load_scenario(source_of(asked.request.body, t.all("set"), t.flag("datasheet")), *known),
                    asked.engine());
  const std::vector<std::string> left_out = left_out_of(t.get("leave_out"));
  const auto is_left_out = [&](const char* key) {
    return std::find(left_out.begin(), left_out.end(), key) != left_out.end();
  };
  Prediction prediction = full_prediction(run, {.advice = t.flag("advice"),
                                                .sensitivity = t.flag("sensitivity"),
                                                .sensitivity_keys = !is_left_out("sensitivity_keys")});
  if (is_left_out("kernels")) prediction.kernels.clear();
  if (is_left_out("modules")) prediction.modules.clear();
  ordered_json out = answer_json(run, prediction, {.memory_report = t.flag("memory_report")}, options_.tool);
  if (t.flag("ladder")) out["ladder"] = ladder_json(run);
  for (const std::string& key : left_out)
    if (key != "sensitivity_keys") out.erase(key);
    else if (const auto found = out.find("sensitivity"); found != out.end()) found->erase("keys");
  const std::string show = t.get("show");
  const bool longest = t.get("kernel") == "longest";
  const std::optional<std::uint64_t> kernel = longest ? std::nullopt : t.number("kernel");
  if (!show.empty() || kernel || longest) {
    const PagePieces pieces = pieces_of(show);
    const StepDetail detail = step_detail(run, pieces.memory);
    if (!show.empty()) out["page"] = page_of(run, detail, pieces);
    if (kernel || longest) out["kernel"] = kernel_of(run, detail, kernel ? *kernel : longest_kind(detail), pieces);
  }
  return json_reply(out);
}

Reply Api::collectives(const Asked& asked) {
  asked.takes({"cluster"});
  const std::string name = asked.target.get("cluster");
  if (name.empty()) throw UserError("cluster: say which one (/api/clusters lists them)");
  const Cluster cluster = load_cluster(name);
  const Host host = load_host("default", host_class_names());
  const CollectiveLines lines(cluster, load_gpu(cluster.gpu_name),
                              host.class_costs[static_cast<std::size_t>(HostClass::collective)], false);
  return reply_by_lines(asked.request.body, "collectives",
                        [&](std::string_view line) { return lines.answer(line).text; });
}

Reply Api::kernels(const Asked& asked) {
  const Target& t = asked.target;
  asked.takes({"hardware", "software", "set", "engine", "sensitivity", "datasheet"});
  if (t.get("hardware").empty()) throw UserError("hardware: say which GPU (/api/hardware lists them)");
  std::vector<config::Override> changes;
  for (const std::string& change : t.all("set")) changes.push_back(config::parse_override(change));
  const std::string software = t.get("software");
  const KernelLines lines(
      load_gpu(t.get("hardware"), changes, t.flag("datasheet") ? Numbers::datasheet : Numbers::measured),
      load_software(software.empty() ? "pytorch-2.11" : software), asked.engine(),
      {.changed_hardware = !changes.empty(), .sensitivity = t.flag("sensitivity"), .text = false, .timeline = false});
  return reply_by_lines(asked.request.body, "kernel cases",
                        [&](std::string_view line) { return lines.answer(line).text; });
}

}  // namespace ridgeline::serve
