// Configurations of other tools as scenarios: what a file says, what it leaves to the tool's defaults, what it refuses.
#include "sim/training_files/training_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "sim/config/config_error.h"
#include "sim/scenario/scenario.h"
#include "sim/training_files/tool_table.h"
#include "sim/training_files/tree_path.h"

namespace ridgeline::training_files {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class TrainingFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("training_files_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string at(const TrainingFile& read, const std::string& path) {
    const config::Node* node = find_path(read.scenario, path);
    return node == nullptr ? "(not said)" : node->scalar;
  }
  std::string refusal(const std::string& name, const std::string& text) const {
    try {
      read_training_file(file(name, text));
      return "(taken)";
    } catch (const UserError& error) {
      return error.what();
    }
  }
  Scenario scenario(const std::string& name, const std::string& text, std::vector<config::Override> changes) const {
    ScenarioSource source;
    source.overrides.push_back({"from", file(name, text), ""});
    for (config::Override& change : changes) source.overrides.push_back(std::move(change));
    return load_scenario(source);
  }
  std::filesystem::path folder_;
};

const char* const kLlamaFactory =
    "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\nlora_target: "
    "all\n"
    "cutoff_len: 1024\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\nlearning_rate: "
    "1.0e-4\n";

TEST_F(TrainingFiles, llama_factory_says_adapters_lengths_and_types) {
  const Scenario s = scenario("train.yaml", kLlamaFactory, {{"hardware", "nvidia-h100-sxm5-80gb", ""}});
  EXPECT_EQ(s.model.layers, 32);
  ASSERT_TRUE(s.training.lora.has_value());
  EXPECT_EQ(s.training.lora->rank, 16);
  EXPECT_EQ(s.training.sequence_length, 1024);
  EXPECT_EQ(s.training.micro_batch, 2);
  EXPECT_EQ(s.training.gradient_accumulation, 4);
  EXPECT_EQ(s.training.precision, Precision::amp_bf16);
}

TEST_F(TrainingFiles, the_question_counts_more_than_the_file) {
  const Scenario s = scenario("train.yaml", kLlamaFactory,
                              {{"hardware", "nvidia-h100-sxm5-80gb", ""}, {"training.micro_batch", "8", ""}});
  EXPECT_EQ(s.training.micro_batch, 8);
  EXPECT_EQ(s.training.gradient_accumulation, 4);
}

TEST_F(TrainingFiles, torchtitan_cuts_over_the_gpus_that_its_degrees_need) {
  const TrainingFile read =
      read_training_file(file("t.toml",
                              "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\n"
                              "seq_len = 512\n[parallelism]\ndata_parallel_shard_degree = 2\n"
                              "tensor_parallel_degree = 2\n[activation_checkpoint]\nmode = \"none\"\n"));
  EXPECT_EQ(read.gpus, 4);
  EXPECT_EQ(at(read, "training.parallel.data"), "2");
  EXPECT_EQ(at(read, "training.parallel.tensor"), "2");
  EXPECT_EQ(at(read, "training.parallel.strategy"), "fsdp");
  EXPECT_EQ(at(read, "training.activation_checkpointing"), "none");
}

// Accumulation x micro batch x ranks of data is the global batch, whoever divides.
TEST_F(TrainingFiles, global_batches_divide_or_are_refused) {
  const auto deepspeed = [&](int global, int micro) {
    return file("ds.json", fmt::format("{{\"train_batch_size\": {}, \"train_micro_batch_size_per_gpu\": {}, "
                                       "\"bf16\": {{\"enabled\": true}}, \"zero_optimization\": {{\"stage\": 2}}}}",
                                       global, micro));
  };
  for (const int gpus : {2, 4, 8})
    for (const int micro : {1, 2, 4})
      for (const int times : {1, 3, 16}) {
        const TrainingFile read = read_training_file(deepspeed(gpus * micro * times, micro), {{}, gpus});
        EXPECT_EQ(at(read, "training.micro_batch"), std::to_string(micro));
        EXPECT_EQ(at(read, "training.gradient_accumulation"), std::to_string(times));
        EXPECT_EQ(at(read, "training.parallel.strategy"), "zero2");
      }
  EXPECT_THROW(read_training_file(deepspeed(7, 2), {{}, 2}), config::ConfigError);
}

TEST_F(TrainingFiles, a_configuration_reads_the_one_it_names) {
  file("ds.json", R"({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"},
                      "train_micro_batch_size_per_gpu": "auto"})");
  const std::string train = file("train.yaml", std::string(kLlamaFactory) + "deepspeed: ds.json\n");
  const TrainingFile read = read_training_file(train, {{}, 4});
  EXPECT_EQ(read.tool, "LLaMA-Factory and DeepSpeed");
  EXPECT_EQ(at(read, "training.parallel.strategy"), "zero3");
  EXPECT_EQ(at(read, "training.parallel.framework"), "deepspeed");
  EXPECT_EQ(at(read, "training.micro_batch"), "2");
  EXPECT_THAT(refusal("other.yaml", std::string(kLlamaFactory) + "deepspeed: lost.json\n"),
              HasSubstr("lost.json is not there"));
}

TEST_F(TrainingFiles, what_decides_a_number_and_cannot_be_said_is_refused_at_its_place) {
  EXPECT_THAT(refusal("a.yaml", std::string(kLlamaFactory) + "use_galore: true\n"),
              HasSubstr("a.yaml:11:13: use_galore: "));
  EXPECT_EQ(refusal("b.yaml", std::string(kLlamaFactory) + "use_galore: false\n"), "(taken)");
  EXPECT_THAT(refusal("c.yaml", std::string(kLlamaFactory) + "finetuning_type_of_mine: x\n"), "(taken)");
}

TEST_F(TrainingFiles, keys_nobody_knows_are_listed) {
  const TrainingFile read =
      read_training_file(file("a.yaml", std::string(kLlamaFactory) + "my_own_key: 7\nsaid_off: false\n"));
  EXPECT_THAT(read.unknown, Contains("my_own_key"));
  EXPECT_THAT(read.unknown, ::testing::Not(Contains("said_off")));
  EXPECT_THAT(read.without_effect, Contains("learning_rate"));
}

TEST_F(TrainingFiles, what_is_no_such_file_is_refused) {
  for (const std::string text : {"hardware: nvidia-t4\nmodel: gpt2\ntraining: {micro_batch: 1}\n",
                                 R"({"model_type": "llama", "hidden_size": 4096})", "a: 1\nb: 2\n"}) {
    EXPECT_THAT(refusal("x.yaml", text), HasSubstr("no training configuration of a tool that is known"));
    EXPECT_EQ(tool_of_file(file("y.yaml", text)), "") << text;
  }
  EXPECT_EQ(tool_of_file(file("z.yaml", kLlamaFactory)), "LLaMA-Factory");
}

TEST_F(TrainingFiles, a_length_that_is_left_to_the_data_is_taken_and_said) {
  const TrainingFile read = read_training_file(
      file("tune.yaml",
           "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\ntokenizer: {max_seq_len: null}\n"
           "batch_size: 2\noptimizer: {_component_: torch.optim.AdamW}\n"));
  ASSERT_NE(find_path(read.scenario, "training.sequence_length"), nullptr);
  EXPECT_EQ(find_path(read.scenario, "training.sequence_length")->scalar, "1024");
  EXPECT_THAT(read.notes, Contains(HasSubstr("--seq says another")));
}

TEST_F(TrainingFiles, a_deepspeed_file_that_is_not_there_is_taken_by_its_name) {
  for (const auto& [name, stage] : {std::pair{"examples/deepspeed/ds_z3_config.json", "zero3"},
                                    {"zero2.json", "zero2"},
                                    {"scripts/zero_stage1_config.json", "zero1"}}) {
    const TrainingFile read =
        read_training_file(file("a.yaml", std::string(kLlamaFactory) + "deepspeed: " + name + "\n"), {{}, 8});
    const config::Node* strategy = find_path(read.scenario, "training.parallel.strategy");
    ASSERT_NE(strategy, nullptr) << name;
    EXPECT_EQ(strategy->scalar, stage) << name;
    EXPECT_THAT(read.notes, Contains(HasSubstr("by its name"))) << name;
  }
  EXPECT_THAT(refusal("b.yaml", std::string(kLlamaFactory) + "deepspeed: ds_config.json\n"), HasSubstr("is not there"));
}

TEST_F(TrainingFiles, an_argument_of_a_launch_script_is_taken_as_not_said) {
  const TrainingFile read = read_training_file(
      file("run.sh",
           "bs=$4\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
           "--num-attention-heads 4 --micro-batch-size 2 --global-batch-size $bs --seq-length 128 "
           "--max-position-embeddings 128 --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt\n"));
  EXPECT_THAT(read.notes, Contains(HasSubstr("global-batch-size is a variable that the script does not set")));
  EXPECT_EQ(find_path(read.scenario, "model.vocabulary")->scalar, "50257");
}

TEST_F(TrainingFiles, more_parallel_ranks_than_gpus_take_as_many_as_they_need) {
  const TrainingFile read = read_training_file(
      file("run.sh",
           "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size 8 "
           "--pipeline-model-parallel-size 2 --num-layers 4 --hidden-size 64 --num-attention-heads 8 "
           "--micro-batch-size 1 --global-batch-size 4 --seq-length 128 --max-position-embeddings 128 "
           "--vocab-size 1000\n"));
  EXPECT_EQ(read.gpus, 16);
  EXPECT_THAT(read.notes, Contains(HasSubstr("16 taken")));
}

TEST_F(TrainingFiles, nanogpt_divides_its_accumulation_by_the_gpus) {
  const std::string train =
      file("train.py", "batch_size = 12\nblock_size = 1024\ngradient_accumulation_steps = 5 * 8\n");
  EXPECT_EQ(at(read_training_file(train, {{}, 8}), "training.gradient_accumulation"), "5");
  EXPECT_EQ(at(read_training_file(train), "training.gradient_accumulation"), "40");
  EXPECT_THROW(read_training_file(train, {{}, 3}), config::ConfigError);
}

TEST_F(TrainingFiles, megatron_says_the_network_by_its_sizes) {
  const TrainingFile read = read_training_file(file(
      "run.sh",
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \\\n"
      " --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --bf16 \\\n"
      " --tensor-model-parallel-size 2 --vocab-size 50257\n"));
  EXPECT_EQ(read.gpus, 8);
  EXPECT_EQ(at(read, "model.layers"), "24");
  EXPECT_EQ(at(read, "training.parallel.framework"), "megatron");
  EXPECT_EQ(at(read, "training.gradient_accumulation"), "8");  // 64 / (2 x 4 ranks of data)
}

TEST_F(TrainingFiles, counts_of_zero_and_beyond_reason_are_refused) {
  for (const char* text :
       {"train_batch_size: 8\ntrain_micro_batch_size_per_gpu: 0\nzero_optimization: {stage: 1}\n",
        "train_batch_size: 9e14\ntrain_micro_batch_size_per_gpu: 8e14\nzero_optimization: {stage: 1}\n",
        "train_batch_size: -8\ntrain_micro_batch_size_per_gpu: 2\nzero_optimization: {stage: 1}\n"})
    EXPECT_THROW(read_training_file(file("ds.yaml", text), {{}, 1 << 20}), config::ConfigError) << text;
  EXPECT_THAT(refusal("t.toml",
                      "[parallelism]\ndata_parallel_shard_degree = 1000000\ntensor_parallel_degree = 1000000\n"
                      "pipeline_parallel_degree = 1000000\n"),
              HasSubstr("too many"));
}

// One file of each format, which tools/mutate_inputs.py changes at random too.
TEST(TrainingFileExamples, are_recognised_and_fill_a_scenario) {
  const std::filesystem::path folder = RIDGELINE_SOURCE_DIR "/tests/training_files/examples";
  for (const auto& [name, tool, batch] : {std::tuple{"llama_factory.yaml", "LLaMA-Factory", "2"},
                                          {"deepspeed.json", "DeepSpeed", "2"},
                                          {"torchtitan.toml", "torchtitan", "1"},
                                          {"megatron.sh", "Megatron-LM", "2"},
                                          {"nanogpt.py", "nanoGPT", "2"}}) {
    const TrainingFile read = read_training_file((folder / name).string());
    EXPECT_EQ(read.tool, tool);
    const config::Node* micro = find_path(read.scenario, "training.micro_batch");
    ASSERT_NE(micro, nullptr) << name;
    EXPECT_EQ(micro->scalar, batch) << name;
    EXPECT_TRUE(read.unknown.empty()) << name << ": " << read.unknown.front();
  }
}

// Each target of each table is a key of the scenario or a fact, so that no row says something to nobody.
TEST(ToolTables, targets_are_keys_or_facts) {
  const std::set<std::string> facts{"model_name",
                                    "model_family",
                                    "layers",
                                    "hidden",
                                    "heads",
                                    "kv_heads",
                                    "head_size",
                                    "feed_forward",
                                    "vocabulary",
                                    "max_positions",
                                    "activation",
                                    "norm",
                                    "positions",
                                    "tied",
                                    "bias",
                                    "dropout",
                                    "experts",
                                    "experts_per_token",
                                    "expert_feed_forward",
                                    "micro_batch",
                                    "accumulation",
                                    "global_batch",
                                    "global_tokens",
                                    "total_accumulation",
                                    "gpus",
                                    "nodes",
                                    "gpus_per_node",
                                    "data_ranks",
                                    "sharding",
                                    "framework",
                                    "replicate",
                                    "shard",
                                    "tensor",
                                    "pipeline",
                                    "context",
                                    "expert",
                                    "virtual_stages",
                                    "sequence_parallel",
                                    "layers_per_virtual_stage",
                                    "pipeline_micro_batch",
                                    "offload_optimizer",
                                    "offload_parameters",
                                    "method",
                                    "lora_rank",
                                    "lora_targets",
                                    "lora_dropout",
                                    "lora_dora",
                                    "lora_modules_to_save",
                                    "lora_dtype",
                                    "load_in_4bit",
                                    "load_in_8bit",
                                    "double_quant",
                                    "quant_type",
                                    "checkpointing",
                                    "packing",
                                    "optimizer",
                                    "sequences_per_sample",
                                    "software",
                                    "model"};
  const auto known = [&](const std::string& target) {
    return facts.count(target) == 1 || target.starts_with("training.") || target.starts_with("model.") ||
           target.starts_with("allocator.");
  };
  EXPECT_GE(tool_tables().size(), 14u);
  for (const ToolTable& table : tool_tables()) {
    for (const auto& [target, value] : table.defaults) EXPECT_TRUE(known(target)) << table.name << ": " << target;
    for (const Row& row : table.rows) {
      EXPECT_TRUE(row.to.empty() || known(row.to)) << table.name << ": " << row.key << ": " << row.to;
      for (const auto& [word, targets] : row.sets)
        for (const auto& [target, value] : targets)
          EXPECT_TRUE(known(target)) << table.name << ": " << row.key << ": " << target;
    }
    for (const std::string& name : table.includes) EXPECT_NO_THROW(tool_table(name)) << table.name;
    EXPECT_TRUE(table.name == "common" || !table.recognised_by.empty()) << table.name;
  }
}

}  // namespace
}  // namespace ridgeline::training_files
