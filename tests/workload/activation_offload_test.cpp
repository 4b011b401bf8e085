// Saved tensors in the host's memory: each goes there once and comes back once, as the measured steps have it, and the
// device never holds more for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/kernels/attention/attention_choice.h"
#include "sim/program/step_program.h"
#include "sim/study/validation/step_validation.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

struct Copies {
  std::int64_t out = 0, in = 0, bytes_out = 0, bytes_in = 0;
};

/// Of the last step.
Copies copies_of(const OpTrace& trace) {
  Copies sum;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const auto* copy = std::get_if<Copy>(&trace.ops[trace.calls[trace.records[i].index].op]);
    if (copy == nullptr || !leaves_device(copy->kind)) continue;
    const bool out = copy->kind == CopyKind::device_to_host || copy->kind == CopyKind::device_to_pageable;
    (out ? sum.out : sum.in) += 1;
    (out ? sum.bytes_out : sum.bytes_in) += copy->rows * copy->cols * bytes_of(copy->type);
  }
  return sum;
}

struct Moved {
  std::int64_t tensors = 0, bytes = 0;
};

/// Out of the device from within blocks, in the last step.
Moved moved_in_blocks(const OpTrace& trace) {
  Moved sum;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    const auto* copy = std::get_if<Copy>(&trace.ops[call.op]);
    if (copy == nullptr || copy->kind != CopyKind::device_to_host || call.layer < 0) continue;
    ++sum.tensors;
    sum.bytes += copy->rows * copy->cols * bytes_of(copy->type);
  }
  return sum;
}

/// Most bytes alive at once.
std::int64_t peak_of(const OpTrace& trace) {
  std::int64_t now = 0, most = 0;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::allocate) now += trace.storages[record.index].bytes;
    else if (record.kind == Record::Kind::free) now -= trace.storages[record.index].bytes;
    most = std::max(most, now);
  }
  return most;
}

OpTrace run(const std::string& model, ActivationOffload offload, AttentionChoice attention,
            ActivationCheckpointing checkpointing = ActivationCheckpointing::none) {
  TrainingDescription training;
  training.micro_batch = 2;
  training.sequence_length = 128;
  training.precision = attention == AttentionChoice::efficient ? Precision::fp32 : Precision::amp_bf16;
  training.activation_offload = offload;
  training.activation_checkpointing = checkpointing;
  return training_run(load_model(model), training, attention);
}

ScenarioSource offloaded(nlohmann::json row, const std::string& offload) {
  ScenarioSource source = *scenario_of_measured_step(row, "nvidia-h100-sxm5-80gb");
  source.overrides.push_back({"training.activation_offload", offload, ""});
  source.overrides.push_back({"training.tf32", "false", ""});
  return source;
}

TEST(ActivationOffload, Moves_the_tensors_and_bytes_and_runs_the_kernels_of_the_measured_steps) {
  int rows = 0;
  for_each_row(testing::measurements().file("h100/offloaded_steps.jsonl.gz"), [&](const nlohmann::json& row) {
    SCOPED_TRACE(row["name"].get<std::string>());
    const Scenario s = load_scenario(offloaded(row, row["offload"]));
    const OpTrace trace = training_run(s.model, s.training, choose_attention(s.training, s.model, s.gpu, s.software));
    const StepProgram program = make_program(trace, s.gpu, s.software);
    const auto step = program.steady_step();
    EXPECT_EQ(std::count_if(step.begin(), step.end(),
                            [](const Action& action) { return action.kind == Action::Kind::launch; }),
              row["profiled"]["kernels"].get<std::int64_t>());
    if (row["offload"] == "none") return;
    ++rows;
    const Copies copies = copies_of(trace);
    // Transformers reads whether the mask is whole: one boolean, which is no saved tensor.
    const std::int64_t others = row["model"]["kind"] == "llama" ? 1 : 0;
    EXPECT_EQ(copies.out, row["saved"]["tensors"].get<std::int64_t>() + others);
    EXPECT_EQ(copies.bytes_out, row["saved"]["bytes"].get<std::int64_t>() + others);
    EXPECT_EQ(copies.bytes_in, row["saved"]["bytes"].get<std::int64_t>());
  });
  EXPECT_EQ(rows, 12);
}

TEST(ActivationOffload, Brings_back_what_it_took_and_never_raises_the_peak) {
  for (const char* model : {"gpt2", "bert-base", "nanogpt-char"})
    for (const AttentionChoice attention :
         {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::cudnn, AttentionChoice::efficient}) {
      const std::int64_t on_device = peak_of(run(model, ActivationOffload::none, attention));
      for (const ActivationOffload offload : {ActivationOffload::pinned, ActivationOffload::pageable}) {
        SCOPED_TRACE(std::string(model) + " " + std::to_string(static_cast<int>(attention)));
        const OpTrace trace = run(model, offload, attention);
        const Copies copies = copies_of(trace);
        EXPECT_GT(copies.out, 0);
        EXPECT_EQ(copies.out, copies.in);
        EXPECT_EQ(copies.bytes_out, copies.bytes_in);
        EXPECT_LE(peak_of(trace), on_device);
      }
    }
}

TEST(ActivationOffload, A_copy_out_makes_the_host_wait_and_one_back_only_from_pageable_memory) {
  for (const ActivationOffload offload : {ActivationOffload::pinned, ActivationOffload::pageable}) {
    const OpTrace trace = run("gpt2", offload, AttentionChoice::flash);
    const auto begin = trace.records.begin() + trace.steps.back().begin,
               end = trace.records.begin() + trace.steps.back().end;
    const auto waits = std::count_if(begin, end, [](const Record& r) { return r.kind == Record::Kind::wait_for_gpu; });
    const Copies copies = copies_of(trace);
    EXPECT_EQ(waits, offload == ActivationOffload::pinned ? copies.out : copies.out + copies.in);
  }
}

TEST(ActivationOffload, Of_a_checkpointed_block_its_input_goes_alone) {
  const OpTrace kept = run("gpt2", ActivationOffload::pinned, AttentionChoice::flash, ActivationCheckpointing::block);
  const OpTrace all = run("gpt2", ActivationOffload::pinned, AttentionChoice::flash);
  // Twelve inputs of [2, 128, 768] in fp32; what lies outside the blocks goes as before.
  const Moved few = moved_in_blocks(kept), many = moved_in_blocks(all);
  EXPECT_EQ(few.tensors, 12);
  EXPECT_EQ(few.bytes, 12 * 2 * 128 * 768 * 4);
  EXPECT_GT(many.tensors, few.tensors);
  EXPECT_EQ(copies_of(kept).bytes_out - few.bytes, copies_of(all).bytes_out - many.bytes);
}

TEST(ActivationOffload, Says_what_it_does_not_go_with) {
  const auto message = [](const char* key, const char* value, const char* offload = "pinned") {
    ScenarioSource source;
    source.text =
        R"({"title": "t", "hardware": "nvidia-h100-sxm5-80gb", "model": "gpt2",
            "training": {"micro_batch": 1, "sequence_length": 64, "precision": "bf16"}})";
    source.text_name = "t";
    source.overrides.push_back({"training.activation_offload", offload, ""});
    if (key != nullptr) source.overrides.push_back({key, value, ""});
    try {
      load_scenario(source);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(nullptr, nullptr), "");
  EXPECT_THAT(message("training.compile", "true"), HasSubstr("compile: true is not modelled"));
  EXPECT_THAT(message("training.cuda_graphs", "true"), HasSubstr("cuda_graphs: true is not modelled"));
  EXPECT_THAT(message("cluster", "hgx-h100"), HasSubstr("over several GPUs is not modelled"));
  EXPECT_THAT(message(nullptr, nullptr, "disk"), HasSubstr("pinned"));
}

}  // namespace
}  // namespace ridgeline
