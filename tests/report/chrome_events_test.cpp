// What the events of a timeline say, kernel by kernel and call by call, against the step that they are of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/report/text/names.h"
#include "sim/report/timeline/chrome_trace.h"
#include "sim/timeline/utilization.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// A step of a network of two layers and its timeline, parsed.
struct Step {
  std::shared_ptr<const StepRun> run;
  json trace;
  double origin = 0;  ///< microseconds before the host's first call
  std::vector<const Action*> launches;
  std::map<std::string, std::vector<const json*>> by_category;
  std::map<std::string, std::vector<const json*>> counters;

  [[nodiscard]] const KernelLaunch& launch(std::size_t i) const { return run->program().launches[launches[i]->index]; }
  [[nodiscard]] const Call& call(std::size_t i) const { return run->program().trace->calls[launches[i]->call]; }
  /// Events of kernels, memsets and copies in the order of their correlation.
  [[nodiscard]] std::vector<const json*> on_gpu() const {
    std::vector<const json*> all;
    for (const char* category : {"kernel", "gpu_memset", "gpu_memcpy"})
      if (const auto at = by_category.find(category); at != by_category.end())
        all.insert(all.end(), at->second.begin(), at->second.end());
    std::sort(all.begin(), all.end(), [](const json* a, const json* b) {
      return (*a)["args"]["correlation"].get<int>() < (*b)["args"]["correlation"].get<int>();
    });
    return all;
  }
};

Step step_of(const char* training, const char* engine = "analytic") {
  ScenarioSource source;
  source.text = std::string(
                    "{hardware: nvidia-h200-sxm-141gb, model: bert-base, training: {micro_batch: 2, "
                    "sequence_length: 64, ") +
                training + "}}";
  source.text_name = "test";
  static Session session;
  Step step;
  step.run = std::make_shared<const StepRun>(session, load_scenario(source), engine);
  const StepRun& run = *step.run;
  const Scenario& scenario = run.scenario();
  step.trace = json::parse(chrome_trace({.title = scenario.title,
                                         .program = run.program(),
                                         .times = run.times(),
                                         .timeline = run.timeline(),
                                         .gpu = scenario.gpu,
                                         .host = scenario.host,
                                         .memory = run.memory_run().samples,
                                         .optimizer = "AdamW",
                                         .cuda = 12.4,
                                         .block = "BertLayer"}));
  step.origin = 1e6 * std::min(0.0, run.timeline().host_begin.value());
  for (const Action& action : run.program().steady_step())
    if (action.kind == Action::Kind::launch) step.launches.push_back(&action);
  for (const json& event : step.trace["traceEvents"]) {
    if (event["ph"] == "X") step.by_category[event["cat"]].push_back(&event);
    if (event["ph"] == "C") step.counters[event["name"]].push_back(&event);
  }
  return step;
}

double begin_of(const json& event) { return event["ts"].get<double>(); }
double end_of(const json& event) { return event["ts"].get<double>() + event["dur"].get<double>(); }
bool inside(const json& inner, const json& outer) {
  return begin_of(inner) >= begin_of(outer) - 1e-3 && end_of(inner) <= end_of(outer) + 1e-3;
}

TEST(ChromeEvents, a_kernel_says_its_span_its_launch_and_its_figures) {
  const Step step = step_of("precision: amp-bf16, optimizer: adamw");
  const auto kernels = step.on_gpu();
  const Gpu& gpu = step.run->scenario().gpu;
  ASSERT_EQ(kernels.size(), step.launches.size());
  int computing = 0, copies = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const json &event = *kernels[i], &args = event["args"];
    const KernelSpan& span = step.run->timeline().kernels[i];
    const KernelTime& time = step.run->times()[i];
    const KernelLaunch& launch = step.launch(i);
    ASSERT_EQ(args["correlation"], i + 1);
    EXPECT_NEAR(begin_of(event), 1e6 * span.start.value() - step.origin, 1e-3);
    EXPECT_NEAR(event["dur"].get<double>(), 1e6 * (span.end - span.start).value(), 2e-3);
    EXPECT_EQ(args["stream"], 7 + 4 * span.stream);
    EXPECT_EQ(event["tid"], args["stream"]);
    EXPECT_EQ(event["pid"], 0);
    if (event["cat"] != "kernel") {
      const double bytes = std::get<FixedWork>(launch.work).bytes, seconds = (span.end - span.start).value();
      EXPECT_EQ(args["bytes"], std::llround(bytes));
      EXPECT_NEAR(args["memory bandwidth (GB/s)"].get<double>(), bytes / seconds * 1e-9, 1e-6 * bytes / seconds * 1e-9);
      ++copies;
      continue;
    }
    EXPECT_EQ(args["grid"], json(launch.grid));
    EXPECT_EQ(args["block"], json({launch.threads_per_block, 1, 1}));
    EXPECT_EQ(args["registers per thread"], launch.registers_per_thread);
    EXPECT_EQ(args["shared memory"], launch.shared_bytes_per_block);
    const double each = launch.blocks() / gpu.sm.count;
    EXPECT_NEAR(args["blocks per SM"].get<double>(), each, 1e-6 * each);
    EXPECT_NEAR(args["warps per SM"].get<double>(), each * std::ceil(launch.threads_per_block / 32.0),
                each * 0.97 + 1e-6);
    EXPECT_EQ(args["est. achieved occupancy %"], std::lround(100.0 * time.occupancy));
    EXPECT_EQ(args["limited by"], name_of(time.limited_by()));
    EXPECT_EQ(args["DRAM read bytes"], std::llround(time.dram_read_bytes));
    EXPECT_EQ(args["DRAM written bytes"], std::llround(time.dram_write_bytes));
    EXPECT_EQ(args.contains("FLOPs"), launch.flops > 0.0);
    if (launch.flops > 0.0) {
      EXPECT_NEAR(args["FLOPs"].get<double>(), launch.flops, 1e-6 * launch.flops);
      ++computing;
    }
  }
  EXPECT_GT(computing, 100);
  EXPECT_GT(copies, 0);
}

TEST(ChromeEvents, a_call_is_inside_its_operator_on_the_thread_of_its_pass) {
  const Step step = step_of("precision: amp-bf16, optimizer: adamw");
  const auto kernels = step.on_gpu();
  std::map<std::int64_t, const json*> operators, calls;
  for (const json* event : step.by_category.at("cpu_op"))
    operators[(*event)["args"]["External id"].get<std::int64_t>()] = event;
  for (const json* event : step.by_category.at("cuda_runtime"))
    if ((*event)["args"].contains("External id")) calls[(*event)["args"]["correlation"].get<std::int64_t>()] = event;
  ASSERT_EQ(calls.size(), kernels.size());
  const StepProgram& program = step.run->program();
  std::set<int> threads;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const json& call = *calls.at(static_cast<std::int64_t>(i) + 1);
    const std::int64_t external = call["args"]["External id"];
    EXPECT_EQ((*kernels[i])["args"]["External id"], external) << "the kernel leads to its operator";
    EXPECT_NEAR(end_of(call), 1e6 * step.run->timeline().kernels[i].issued.value() - step.origin, 1e-3);
    ASSERT_TRUE(operators.contains(external));
    const json& op = *operators.at(external);
    EXPECT_TRUE(inside(call, op)) << call << op;
    EXPECT_EQ(call["tid"], op["tid"]);
    const int thread = step.call(i).phase == Phase::backward ? 2 : 1;
    EXPECT_EQ(op["tid"], thread);
    threads.insert(thread);
    const json& args = op["args"];
    EXPECT_EQ(args.contains("Layer"), step.call(i).layer >= 0);
    if (step.call(i).layer >= 0) {
      EXPECT_EQ(args["Layer"], step.call(i).layer);
    }
    const auto operands = program.operands_of(step.launches[i]->call);
    json reads = json::array(), writes = json::array();
    for (std::size_t k = 0; k < operands.size(); ++k)
      (k < step.call(i).inputs ? reads : writes)
          .push_back({operands[k].storage, operands[k].bytes, program.storages[operands[k].storage].bytes});
    EXPECT_EQ(args["Storages"]["reads"], reads);
    EXPECT_EQ(args["Storages"]["writes"], writes);
    // Launches of one call share an operator, those of two calls do not.
    if (i > 0) {
      const bool same = step.launches[i]->call == step.launches[i - 1]->call;
      EXPECT_EQ((*kernels[i - 1])["args"]["External id"] == external, same);
    }
  }
  EXPECT_EQ(threads, (std::set<int>{1, 2}));
}

TEST(ChromeEvents, annotations_span_the_step_the_optimizer_and_each_layer) {
  const Step step = step_of("precision: amp-bf16, optimizer: adamw");
  const auto find = [&](const char* category, std::string_view name) {
    std::vector<const json*> found;
    for (const json* event : step.by_category.at(category))
      if ((*event)["name"] == name) found.push_back(event);
    return found;
  };
  const auto whole = find("user_annotation", "ProfilerStep#1"),
             whole_gpu = find("gpu_user_annotation", "ProfilerStep#1");
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(whole_gpu.size(), 1u);
  for (const json* event : step.by_category.at("cpu_op")) EXPECT_TRUE(inside(*event, *whole[0]));
  const auto kernels = step.on_gpu();
  double first = 1e300, last = 0.0, optimizer_first = 1e300, optimizer_last = 0.0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    first = std::min(first, begin_of(*kernels[i])), last = std::max(last, end_of(*kernels[i]));
    if (step.call(i).phase != Phase::optimizer) continue;
    optimizer_first = std::min(optimizer_first, begin_of(*kernels[i]));
    optimizer_last = std::max(optimizer_last, end_of(*kernels[i]));
  }
  EXPECT_NEAR(begin_of(*whole_gpu[0]), first, 2e-3);
  EXPECT_NEAR(end_of(*whole_gpu[0]), last, 2e-3);
  const auto optimizer = find("gpu_user_annotation", "Optimizer.step#AdamW.step");
  ASSERT_EQ(optimizer.size(), 1u);
  EXPECT_NEAR(begin_of(*optimizer[0]), optimizer_first, 2e-3);
  EXPECT_NEAR(end_of(*optimizer[0]), optimizer_last, 2e-3);
  EXPECT_EQ(find("user_annotation", "Optimizer.step#AdamW.step").size(), 1u);
  EXPECT_EQ(find("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad").size(), 1u);
  // Each layer's forward pass is a module, and holds the operators of its layer.
  const auto& modules = step.by_category.at("python_function");
  const auto layers = static_cast<int>(step.run->scenario().model.layers);
  ASSERT_EQ(modules.size(), static_cast<std::size_t>(layers));
  for (int layer = 0; layer < layers; ++layer) {
    const json& module = *modules[static_cast<std::size_t>(layer)];
    EXPECT_EQ(module["name"], "nn.Module: BertLayer_" + std::to_string(layer));
    EXPECT_EQ(module["args"]["Python id"], layer + 1);
    EXPECT_EQ(module["args"]["Python module id"], layer);
    int held = 0;
    for (const json* event : step.by_category.at("cpu_op")) {
      if ((*event)["tid"] != 1 || !(*event)["args"].contains("Layer")) continue;
      const bool its = (*event)["args"]["Layer"] == layer;
      EXPECT_EQ(inside(*event, module), its) << *event << module;
      held += its ? 1 : 0;
    }
    EXPECT_GT(held, 5);
  }
}

TEST(ChromeEvents, heads_name_the_device_and_the_toolkit) {
  const Step step = step_of("precision: fp32");
  EXPECT_EQ(step.trace["cuda_runtime_version"], 12040);
  EXPECT_EQ(step.trace["deviceProperties"].size(), 1u);
  EXPECT_EQ(step.trace["deviceProperties"][0]["id"], 0);
  EXPECT_EQ(step.trace["distributedInfo"]["backend"], "none");
  EXPECT_EQ(step.trace["distributedInfo"]["world_size"], 1);
  EXPECT_NEAR(step.trace["step_us"].get<double>(), 1e6 * step.run->timeline().step.value(), 1e-3);
  std::map<std::string, std::set<std::string>> named;
  for (const json& event : step.trace["traceEvents"])
    if (event["ph"] == "M" && event["args"].contains("name")) named[event["name"]].insert(event["args"]["name"]);
  EXPECT_EQ(named["process_name"], (std::set<std::string>{"python3", step.run->scenario().gpu.title}));
  EXPECT_EQ(named["thread_name"], (std::set<std::string>{"main thread", "autograd thread", "stream 7 "}));
}

TEST(ChromeEvents, counters_of_use_are_those_of_the_step_in_two_hundred_parts) {
  const Step step = step_of("precision: amp-bf16");
  const StepRun& run = *step.run;
  const auto bins = utilization_over_time(run.program(), run.times(), run.timeline(), run.scenario().gpu, 200);
  const auto& counters = step.counters.at("utilisation (%)");
  ASSERT_EQ(bins.size(), 200u);
  ASSERT_EQ(counters.size(), 201u);
  const double width = 1e6 * run.timeline().step.value() / 200.0;
  for (std::size_t i = 0; i < 200; ++i) {
    const json& args = (*counters[i])["args"];
    EXPECT_NEAR(begin_of(*counters[i]), static_cast<double>(i) * width - step.origin, 1e-3);
    EXPECT_NEAR(args["kernel active"].get<double>(), 100.0 * bins[i].kernel_active, 0.006);
    EXPECT_NEAR(args["SM"].get<double>(), 100.0 * bins[i].sm, 0.006);
    EXPECT_NEAR(args["tensor"].get<double>(), 100.0 * bins[i].tensor, 0.006);
    EXPECT_NEAR(args["DRAM"].get<double>(), 100.0 * bins[i].dram, 0.006);
  }
  for (const auto& [key, value] : (*counters[200])["args"].items()) EXPECT_EQ(value, 0.0) << key;
}

TEST(ChromeEvents, counters_of_memory_are_the_allocators_samples_in_order) {
  const Step step = step_of("precision: amp-bf16");
  const auto& samples = step.run->memory_run().samples;
  const auto& counters = step.counters.at("memory (MiB)");
  ASSERT_EQ(counters.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NEAR((*counters[i])["args"]["allocated"].get<double>(),
                static_cast<double>(samples[i].allocated) / 1048576.0, 1e-3);
    EXPECT_NEAR((*counters[i])["args"]["reserved"].get<double>(), static_cast<double>(samples[i].reserved) / 1048576.0,
                1e-3);
    if (i > 0) {
      EXPECT_GE(begin_of(*counters[i]), begin_of(*counters[i - 1]));
    }
  }
  // None before the host begins the step, none behind it.
  const json& whole = *step.by_category.at("user_annotation")[0];
  EXPECT_GE(begin_of(*counters.front()), begin_of(whole) - 1e-3);
  EXPECT_LE(begin_of(*counters.back()), end_of(whole) + 1e-3);
}

/// Over each kernel the counters' mean is what its profile says.
TEST(ChromeEvents, counters_of_a_simulation_have_the_means_of_each_kernel) {
  const Step step = step_of("precision: amp-bf16", "simulate");
  const StepRun& run = *step.run;
  const auto& counters = step.counters.at("simulated hierarchy (%)");
  std::size_t at = 0;
  int courses = 0;
  for (std::size_t i = 0; i < run.times().size(); ++i) {
    const auto& profile = run.times()[i].profile;
    if (!profile) continue;
    const double start = 1e6 * run.timeline().kernels[i].start.value() - step.origin,
                 end = 1e6 * run.timeline().kernels[i].end.value() - step.origin;
    ASSERT_LT(at, counters.size());
    EXPECT_NEAR(begin_of(*counters[at]), start, 1e-3);
    double moved = 0.0, occupied = 0.0;
    std::size_t points = 0;
    for (; at + 1 < counters.size() && begin_of(*counters[at + 1]) <= end + 1e-3; ++at, ++points) {
      const json& args = (*counters[at])["args"];
      const double length = begin_of(*counters[at + 1]) - begin_of(*counters[at]);
      moved += length * args["DRAM bandwidth"].get<double>();
      occupied += length * args["occupancy"].get<double>();
      if (begin_of(*counters[at + 1]) >= end - 1e-3 && (*counters[at + 1])["args"]["occupancy"] == 0.0) {
        ++at, ++points;
        break;
      }
    }
    for (const auto& [key, value] : (*counters[at])["args"].items()) EXPECT_EQ(value, 0.0) << "nothing behind a kernel";
    ++at;
    if (points > 1) ++courses;
    double seconds = 0.0, held = 0.0, bytes = 0.0;
    if (points > 1) {
      for (const ProfileSample& sample : profile->samples) {
        held += sample.occupancy * (sample.end_s - seconds);
        bytes += (sample.dram_read + sample.dram_write) * (sample.end_s - seconds);
        seconds = sample.end_s;
      }
    } else {
      seconds = 1.0, held = profile->achieved_occupancy,
      bytes = profile->dram_share * run.scenario().gpu.dram.bandwidth.value();
    }
    EXPECT_NEAR(occupied / (end - start), 100.0 * held / seconds, 0.05 + 2.0 * 1e-1 / (end - start));
    EXPECT_NEAR(moved / (end - start), 100.0 * bytes / seconds / run.scenario().gpu.dram.bandwidth.value(),
                0.05 + 2.0 * 1e-1 / (end - start));
  }
  EXPECT_EQ(at, counters.size());
  EXPECT_GT(courses, 3);
}

}  // namespace
}  // namespace ridgeline
