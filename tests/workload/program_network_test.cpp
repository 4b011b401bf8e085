// Networks that are programs, beside the same networks of the generic transformer: equal record by record.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/record_listing.h"

namespace ridgeline {
namespace {

ModelDescription model_of(const std::string& yaml) {
  const config::Node tree = config::parse_yaml(yaml, "m.yaml");
  return load_model(config::Value(tree));
}

/// Everything a trace says but the names of modules, a line each record.
std::vector<std::string> lines_of(const OpTrace& trace) {
  testing_support::RecordListing listing(trace);
  std::vector<std::string> lines;
  for (std::uint32_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    std::string line = listing.lines(i, i + 1);
    if (record.kind == Record::Kind::allocate) line += fmt::format(" layer {}", trace.storages[record.index].layer);
    if (record.kind == Record::Kind::op) line += fmt::format(" layer {}", trace.calls[record.index].layer);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The first line that differs, with what stands before it.
std::string difference(const OpTrace& one, const OpTrace& other) {
  const std::vector<std::string> a = lines_of(one), b = lines_of(other);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    std::string text = fmt::format("record {} of {} and {}\n", i, a.size(), b.size());
    for (std::size_t k = i < 12 ? 0 : i - 12; k < i; ++k) text += "    " + a[k];
    for (std::size_t k = i; k < i + 4; ++k)
      text += fmt::format("-   {}+   {}", k < a.size() ? a[k] : "\n", k < b.size() ? b[k] : "\n");
    return text;
  }
  return "";
}

struct Pair {
  std::string name;
  ModelDescription generic, program;
};

std::vector<Pair> pairs() {
  const std::string gpt2 = "layers: 2, heads: 4, hidden: 64, vocabulary: 100, max_positions: 32";
  const std::string llama = "layers: 2, heads: 4, hidden: 64, vocabulary: 100, feed_forward: 96, key_value_heads: 2";
  return {{"gpt2", model_of("{model_type: gpt2, n_layer: 2, n_head: 4, n_embd: 64, vocab_size: 100, n_positions: 32}"),
           model_of("{family: program, program: blocks/gpt2.block, " + gpt2 + "}")},
          {"llama", model_of("{family: llama, " + llama + "}"),
           model_of("{family: program, program: blocks/llama.block, " + llama + "}")}};
}

struct Way {
  std::string name;
  TrainingDescription training;
  AttentionChoice attention = AttentionChoice::flash;
};

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const auto& [name, precision] : {std::pair{"fp32", Precision::fp32}, std::pair{"amp-bf16", Precision::amp_bf16},
                                        std::pair{"amp-fp16", Precision::amp_fp16}, std::pair{"bf16", Precision::bf16}})
    for (const AttentionChoice attention : {AttentionChoice::flash, AttentionChoice::eager}) {
      // PyTorch's softmax gives the fp32 copy of its input up before its result is cast back, the generic class after.
      if (precision == Precision::bf16 && attention == AttentionChoice::eager) continue;
      Way way{fmt::format("{} {}", name, attention == AttentionChoice::eager ? "eager" : "fused"), {}, attention};
      way.training.micro_batch = 3;
      way.training.sequence_length = 8;
      way.training.precision = precision;
      way.training.gradient_accumulation = 2;
      all.push_back(way);
    }
  const auto add = [&](const std::string& name, const auto& change) {
    Way way = all[6];  // bf16, fused
    way.name = name;
    change(way.training);
    all.push_back(std::move(way));
  };
  add("checkpointed", [](TrainingDescription& t) { t.activation_checkpointing = ActivationCheckpointing::block; });
  add("operations", [](TrainingDescription& t) { t.activation_checkpointing = ActivationCheckpointing::operations; });
  add("ddp", [](TrainingDescription& t) { t.parallel.data = 4; });
  for (const DataStrategy strategy :
       {DataStrategy::fsdp, DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3})
    add(fmt::format("strategy {}", static_cast<int>(strategy)), [&](TrainingDescription& t) {
      t.parallel.data = 4;
      t.parallel.strategy = strategy;
    });
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward})
    for (const std::int64_t rank : {0, 1})
      add(fmt::format("pipeline {} {}", static_cast<int>(schedule), rank), [&](TrainingDescription& t) {
        t.gradient_accumulation = 4;
        t.parallel.pipeline = 2;
        t.parallel.pipeline_rank = rank;
        t.parallel.schedule = schedule;
      });
  add("tensor by hand", [](TrainingDescription& t) {
    t.parallel.tensor = 2;
    t.parallel.tensor_style = TensorStyle::by_hand;
  });
  add("lora", [](TrainingDescription& t) { t.lora = LoraDescription{}; });
  return all;
}

TEST(ProgramNetwork, RunsWhatTheGenericTransformerRuns) {
  for (const Pair& pair : pairs())
    for (const Way& way : ways())
      EXPECT_EQ(difference(training_run(pair.generic, way.training, way.attention),
                           training_run(pair.program, way.training, way.attention)),
                "")
          << pair.name << ", " << way.name;
}

TEST(ProgramNetwork, HasTheParametersAndFlopsOfTheGenericTransformer) {
  for (const Pair& pair : pairs()) {
    EXPECT_EQ(parameter_count(pair.program), parameter_count(pair.generic)) << pair.name;
    // Angles of rotary positions are a product too, which a formula leaves out.
    EXPECT_NEAR(model_flops(pair.program, 2, 16) / model_flops(pair.generic, 2, 16), 1.0, 1e-4) << pair.name;
  }
}

}  // namespace
}  // namespace ridgeline
