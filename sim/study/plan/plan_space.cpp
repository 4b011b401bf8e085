#include "sim/study/plan/plan_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "sim/config/value.h"
#include "sim/study/plan/accepted_names.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/workload/composition.h"

namespace ridgeline {
namespace {

using config::Override;

constexpr std::int64_t kMostVirtualStages = 16;
/// Of one number of GPUs: some KB each.
constexpr std::size_t kMostConfigurations = 100'000;
constexpr const char* kListing = "listing the configurations of a plan";

std::vector<std::int64_t> divisors(std::int64_t of) {
  std::vector<std::int64_t> result, larger;
  for (std::int64_t i = 1; i <= of / i; ++i) {
    if (of % i != 0) continue;
    result.push_back(i);
    if (i != of / i) larger.push_back(of / i);
  }
  result.insert(result.end(), larger.rbegin(), larger.rend());
  return result;
}

/// Keys of the choices, the last word each.
constexpr std::array<std::string_view, 14> kChoices{"activation_checkpointing",
                                                    "tensor",
                                                    "pipeline",
                                                    "context",
                                                    "expert",
                                                    "data",
                                                    "tensor_style",
                                                    "sequence_parallel",
                                                    "schedule",
                                                    "virtual_stages",
                                                    "strategy",
                                                    "replicate",
                                                    "micro_batch",
                                                    "gradient_accumulation"};

std::string last_word(std::string_view key) {
  const auto dot = key.rfind('.');
  return std::string(dot == key.npos ? key : key.substr(dot + 1));
}

class PlanSpace {
 public:
  PlanSpace(const PlanBase& base, std::int64_t gpus, Descriptions& descriptions)
      : base_(base), gpus_(gpus), descriptions_(descriptions) {
    now_.gpus = gpus;
  }

  std::vector<PlanCandidate> candidates() {
    ask_for_names();
    choose(0);
    return std::move(found_);
  }

 private:
  using Next = std::function<void()>;
  /// A choice: gives `next` each of its values, made in `now_`.
  using Step = void (PlanSpace::*)(const Next& next);

  void ask_for_names() {
    const auto names = [&](const std::vector<Override>& more, std::string_view key) {
      std::vector<Override> changes = all_changes(base_, now_);
      changes.insert(changes.end(), more.begin(), more.end());
      return accepted_names(base_.tree, std::move(changes), key, descriptions_);
    };
    const std::string parallel = "training.parallel.";
    recomputes_ = names({}, "training.activation_checkpointing");
    strategies_ = names({{parallel + "data", "1", "plan"}}, parallel + "strategy");
    std::erase(strategies_, "zero3");  // DeepSpeed's
    styles_ = names({{parallel + "data", "1", "plan"}}, parallel + "tensor_style");
    if (gpus_ >= 2)
      schedules_ =
          names({{parallel + "pipeline", "2", "plan"}, {parallel + "data", "1", "plan"}}, parallel + "schedule");
  }

  void choose(std::size_t step) {
    static constexpr std::array<Step, 11> kSteps{
        &PlanSpace::choose_recompute, &PlanSpace::choose_tensor,   &PlanSpace::choose_pipeline,
        &PlanSpace::choose_context,   &PlanSpace::choose_expert,   &PlanSpace::choose_style,
        &PlanSpace::choose_sequence,  &PlanSpace::choose_schedule, &PlanSpace::choose_virtual,
        &PlanSpace::choose_strategy,  &PlanSpace::choose_replicas};
    if (step == kSteps.size()) return choose_micro_batch();
    (this->*kSteps[step])([&] {
      if (runs()) choose(step + 1);
    });
  }

  [[nodiscard]] const std::string* kept(const std::string& key) const {
    const auto found = base_.kept.find(key);
    return found == base_.kept.end() ? nullptr : &found->second.value;
  }
  /// The one that was given, or `all`.
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& key, std::vector<std::int64_t> all) const {
    const std::string* given = kept(key);
    if (given == nullptr) return all;
    config::Node node;
    node.kind = config::Node::Kind::scalar;
    node.scalar = *given;
    return {config::Value(node, "training.parallel." + key).integer({1, 1 << 20})};
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& key, std::vector<std::string> all) const {
    const std::string* given = kept(key);
    if (given != nullptr) return {*given};
    return all;
  }
  /// GPUs that are not yet shared out.
  [[nodiscard]] std::int64_t left() const { return gpus_ / (now_.tensor * now_.pipeline * now_.context); }

  void choose_recompute(const Next& next) {
    for (const std::string& name : names("activation_checkpointing", recomputes_)) now_.recompute = name, next();
    now_.recompute.clear();
  }
  void choose_tensor(const Next& next) { choose_degree(now_.tensor, "tensor", next); }
  void choose_pipeline(const Next& next) { choose_degree(now_.pipeline, "pipeline", next); }
  /// As asked for: steps of few ranks that see other sequences accumulate many micro-batches, and their turns are many.
  void choose_context(const Next& next) {
    for (const std::int64_t n : numbers("context", {1}))
      if (left() % n == 0) now_.context = n, next();
    now_.context = 1;
  }
  void choose_expert(const Next& next) {
    const auto& composition = base_.scenario.model.composition;
    const bool has_experts = composition.given() && composition->stack.experts > 0;
    for (const std::int64_t n : numbers("expert", has_experts ? divisors(left()) : std::vector<std::int64_t>{1}))
      if (left() % n == 0) now_.expert = n, next();
    now_.expert = 1;
  }
  void choose_degree(std::int64_t& degree, const std::string& key, const Next& next) {
    degree = 1;
    const std::int64_t all = left();
    for (const std::int64_t n : numbers(key, divisors(all)))
      if (all % n == 0) degree = n, next();
    degree = 1;
  }
  void choose_style(const Next& next) {
    if (now_.tensor == 1 || styles_.empty() || base_.scenario.training.parallel.megatron()) {
      if (const std::string* given = kept("tensor_style")) now_.tensor_style = *given;
      next();
    } else {
      for (const std::string& name : names("tensor_style", styles_)) now_.tensor_style = name, next();
    }
    now_.tensor_style.clear();
  }
  void choose_sequence(const Next& next) {
    const std::string* given = kept("sequence_parallel");
    for (const bool split : {false, true}) {
      if (given != nullptr ? split != (*given == "true") : split && now_.tensor == 1) continue;
      now_.sequence_parallel = split;
      next();
    }
    now_.sequence_parallel = false;
  }
  void choose_schedule(const Next& next) {
    if (now_.pipeline == 1) return next();
    for (const std::string& name : names("schedule", schedules_)) now_.schedule = name, next();
    now_.schedule.clear();
  }
  /// What the schedule has by itself, and more where it takes any number; no reason for a spelling that it refuses.
  void choose_virtual(const Next& next) {
    if (now_.pipeline == 1) return next();
    if (kept("virtual_stages") != nullptr) {
      now_.virtual_stages = numbers("virtual_stages", {}).front();
      next();
    } else {
      std::string ignored;
      next();
      std::int64_t own = 1;
      now_.data = left();
      if (const auto read = reading(ignored, ignored)) own = read->parallel.virtual_stages;
      for (std::int64_t n = 2; n <= kMostVirtualStages && n * now_.pipeline <= base_.scenario.model.layers; n *= 2) {
        now_.virtual_stages = n;
        std::string key, why;
        if (n == own) continue;
        (void)reading(key, why);
        if (last_word(key) == "virtual_stages" && own == 1) break;
        if (last_word(key) != "virtual_stages") next();
      }
    }
    now_.virtual_stages = 0;
  }
  void choose_strategy(const Next& next) {
    if (left() == 1 && kept("strategy") == nullptr) {  // alone, nothing has to stay equal
      now_.strategy = strategies_.empty() ? "" : strategies_.front();
      next();
    } else {
      for (const std::string& name : names("strategy", strategies_)) now_.strategy = name, next();
    }
    now_.strategy.clear();
  }
  void choose_replicas(const Next& next) {
    if (now_.strategy != "hsdp") return next();
    for (const std::int64_t n : numbers("replicate", divisors(left()))) {
      // One group is fsdp, as many as ranks shard nothing.
      if (kept("replicate") == nullptr && (n == 1 || n == left())) continue;
      now_.replicate = n;
      next();
    }
    now_.replicate = 0;
  }

  /// The leaves: whether they run is found out by many threads.
  void choose_micro_batch() {
    now_.data = left();
    const std::string* data = kept("data");
    if (data != nullptr && numbers("data", {}).front() != now_.data) return;
    if (base_.batch % now_.data != 0) {
      refuse("training.micro_batch",
             fmt::format("{} data parallel ranks do not divide the {} sequences of a step", now_.data, base_.batch));
      return;
    }
    const std::int64_t of_rank = base_.batch / now_.data;
    for (const std::int64_t n : divisors(of_rank)) {
      keep_budget_often(kListing);
      now_.micro_batch = n;
      now_.accumulation = of_rank / n;
      PlanCandidate leaf = now_;
      const bool accumulates = n < of_rank && now_.data > 1 && now_.pipeline == 1;
      const std::string* no_sync = kept("no_sync");
      leaf.no_sync =
          no_sync != nullptr ? *no_sync == "true" : accumulates && (now_.strategy == "ddp" || now_.strategy == "zero1");
      leaf.changes = changes_of(leaf);
      if (found_.size() >= kMostConfigurations)
        throw UserError(fmt::format(
            "the plan has more than {} configurations on {} GPUs: keep some choices (--set training.parallel.tensor=8, "
            "training.micro_batch has {} divisors of {} to choose from), or ask for another --batch",
            kMostConfigurations, gpus_, divisors(of_rank).size(), of_rank));
      found_.push_back(std::move(leaf));
    }
    now_.micro_batch = now_.accumulation = 1;
  }

  [[nodiscard]] static std::vector<Override> changes_of(const PlanCandidate& c) {
    std::vector<Override> out;
    const auto say = [&](std::string key, std::string value) {
      out.push_back({"training." + std::move(key), std::move(value), "plan"});
    };
    say("micro_batch", fmt::to_string(c.micro_batch));
    say("gradient_accumulation", fmt::to_string(c.accumulation));
    if (!c.recompute.empty()) say("activation_checkpointing", c.recompute);
    say("parallel.data", fmt::to_string(c.data));
    if (!c.strategy.empty()) say("parallel.strategy", c.strategy);
    if (c.tensor > 1) say("parallel.tensor", fmt::to_string(c.tensor));
    if (!c.tensor_style.empty()) say("parallel.tensor_style", c.tensor_style);
    if (c.sequence_parallel) say("parallel.sequence_parallel", "true");
    if (c.pipeline > 1) say("parallel.pipeline", fmt::to_string(c.pipeline));
    if (!c.schedule.empty()) say("parallel.schedule", c.schedule);
    if (c.virtual_stages > 0) say("parallel.virtual_stages", fmt::to_string(c.virtual_stages));
    if (c.context > 1) say("parallel.context", fmt::to_string(c.context));
    if (c.expert > 1) say("parallel.expert", fmt::to_string(c.expert));
    if (c.replicate > 0) say("parallel.replicate", fmt::to_string(c.replicate));
    if (c.no_sync) say("parallel.no_sync", "true");
    return out;
  }

  /// `now_` as the reader takes it; else the key that it complains of, and why.
  std::optional<TrainingDescription> reading(std::string& key, std::string& why) {
    keep_budget(kListing);
    PlanCandidate tried = now_;
    tried.data = left();
    if (now_.pipeline > 1)  // enough for any schedule, in whole rounds; nothing else depends on it
      tried.accumulation = now_.pipeline * std::max<std::int64_t>(2, now_.virtual_stages);
    tried.changes = changes_of(tried);
    try {
      return load_shared_scenario(base_.tree, all_changes(base_, tried), descriptions_).scenario.training;
    } catch (const config::ConfigError& error) {
      key = error.key();
      why = error.message();
    } catch (const UserError& error) {
      why = error.what();
    }
    return std::nullopt;
  }

  /// Nothing speaks against what was chosen until now.
  bool runs() {
    std::string key, why;
    if (reading(key, why)) return true;
    const std::string name = last_word(key);
    const bool chosen_later = std::find(kChoices.begin(), kChoices.end(), name) != kChoices.end() && !is_chosen(name);
    // PyTorch's way to split layers is the one that is meant where nothing is said, and may be what is refused.
    const bool style_later = name == "tensor" && now_.tensor > 1 && now_.tensor_style.empty() && !styles_.empty() &&
                             !base_.scenario.training.parallel.megatron();
    if (chosen_later || style_later) return true;  // another choice may do
    refuse(key, why);
    return false;
  }
  [[nodiscard]] bool is_chosen(std::string_view key) const {
    if (key == "activation_checkpointing") return !now_.recompute.empty();
    if (key == "tensor") return now_.tensor > 1;
    if (key == "pipeline") return now_.pipeline > 1;
    if (key == "context") return now_.context > 1;
    if (key == "expert") return now_.expert > 1;
    if (key == "tensor_style") return !now_.tensor_style.empty();
    if (key == "sequence_parallel") return now_.sequence_parallel;
    if (key == "schedule") return !now_.schedule.empty();
    if (key == "virtual_stages") return now_.virtual_stages > 0 || !now_.schedule.empty();
    if (key == "strategy") return !now_.strategy.empty();
    if (key == "replicate") return now_.replicate > 0;
    return false;  // data, micro-batch, accumulation
  }
  /// One of each reason stands for all.
  void refuse(const std::string& key, const std::string& why) {
    const auto [known, is_new] = refused_.emplace(key + ": " + why, found_.size());
    if (!is_new) {
      ++found_[known->second].refusals;
      return;
    }
    PlanCandidate refused = now_;
    refused.data = left();
    refused.refused_key = key;
    refused.refused = why.empty() ? "cannot run" : why;
    found_.push_back(std::move(refused));
  }

  const PlanBase& base_;
  std::int64_t gpus_;
  Descriptions& descriptions_;
  std::vector<std::string> recomputes_, strategies_, styles_, schedules_;
  PlanCandidate now_;
  std::vector<PlanCandidate> found_;
  std::map<std::string, std::size_t> refused_;  ///< by reason: place in `found_`
};

}  // namespace

std::vector<Override> all_changes(const PlanBase& base, const PlanCandidate& candidate) {
  std::vector<Override> changes = base.changes;
  if (const std::int64_t nodes = nodes_for(base.cluster, candidate.gpus); nodes != base.cluster.nodes)
    changes.push_back({"cluster.nodes", fmt::to_string(nodes), "plan"});
  changes.insert(changes.end(), candidate.changes.begin(), candidate.changes.end());
  return changes;
}

std::vector<PlanCandidate> plan_space(const PlanBase& base, std::int64_t gpus, Descriptions& descriptions) {
  return PlanSpace(base, gpus, descriptions).candidates();
}

}  // namespace ridgeline
