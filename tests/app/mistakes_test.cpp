// Mistakes that newcomers type, over all commands: each is refused, and what to type instead comes before any list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Words behind `ridgeline`, and the fix that is told.
struct Mistake {
  const char *typed, *fix;
};

void all_are_told(std::initializer_list<Mistake> mistakes, const std::string& before = "") {
  for (const Mistake& one : mistakes) {
    const std::string typed = before + one.typed;
    const ProgramRun run = run_program(typed);
    EXPECT_EQ(run.exit_code, 2) << typed << "\n" << run.out.substr(0, 200);
    EXPECT_THAT(run.err, HasSubstr(one.fix)) << typed;
    EXPECT_EQ(run.out, "") << typed;
    EXPECT_LT(run.err.size(), 500U) << typed;
  }
}

TEST(Mistakes, InNamesAreToldWithTheNameOrTheKind) {
  all_are_told({{"predict --model lama-3.1-8b --hardware rtx3090", "did you mean llama-3.1-8b?"},
                {"predict --model llama3 --hardware rtx3090", "did you mean llama-3-70b, llama-3-8b?"},
                {"predict --model gpt4 --hardware h100", "save its config.json and give its path"},
                {"predict --model h100 --hardware t4", "h100 is a GPU: hardware: h100, or --hardware h100"},
                {"predict --model gpt2 --hardware gpt2", "gpt2 is a network: model: gpt2, or --model gpt2"},
                {"predict --model model.safetensors --hardware h100", "the config.json beside it"},
                {"predict --model train.py --hardware h100", "ridgeline predict --record train.py"},
                {"predict --model gpt2 --hardware A100", "did you mean nvidia-a100-pcie-40gb"},
                {"predict --model gpt2 --hardware 'DGX H100'", "--cluster \"DGX H100\""},
                {"predict --model gpt2 --hardware mi300x", "GPUs of NVIDIA alone are modelled"},
                {"predict --model gpt2 --hardware tpu-v5e", "GPUs of NVIDIA alone are modelled"},
                {"predict --model gpt2 --hardware rtx5090", "docs/describe-a-chip.md"},
                {"predict --model gpt2 --hardware h100,a100-80gb", "ridgeline compare takes several"},
                {"predict --model gpt2 --hardware h100 --software pytorch-9.9", "there are pytorch-"},
                {"collectives --cluster h100 /dev/null", "h100 is a GPU"},
                {"hardware gpt2", "ridgeline models gpt2"},
                {"models h100", "ridgeline hardware h100"},
                {"models qwen", "did you mean qwen2.5-0.5b"},
                {"schema chip", "did you mean hardware?"},
                {"exercise 99", "they are 1 to 40"}});
}

TEST(Mistakes, InFlagsAreToldWithTheFlag) {
  all_are_told({{"--gpu 3090", "did you mean --hardware?"},
                {"--batch_size 8 --seq_len 1024", "did you mean --batch?"},
                {"--seq_len 1024", "did you mean --seq?"},
                {"--dtype float16", "did you mean --precision?"},
                {"--bf16", "did you mean --precision bf16?"},
                {"--fp16", "did you mean --precision amp-fp16?"},
                {"--optim sgd", "did you mean --optimizer?"},
                {"--gradient-checkpointing", "did you mean --checkpointing?"},
                {"--gpus 8", "did you mean --cluster hgx-h100?"},
                {"--tp 2", "did you mean --parallel tensor=2, with --cluster hgx-h100?"},
                {"--lr 3e-4", "time and memory of a step do not depend on it: leave it out"},
                {"--epochs 3", "leave it out"},
                {"--json", "did you mean --format json?"},
                {"--verbose", "did you mean --explain?"},
                {"-model gpt2", "-model: two dashes, --model"},
                {"--lora", "--lora: a value is missing"},
                {"--checkpointing", "such as --checkpointing block"},
                {"--html", "--html: a value is missing"},
                {"--quiet --explain", "do not go together: leave one out"},
                {"--format yaml", "--format: yaml not in {text,json}"},
                {"--engine fast --model gpt2 --hardware h100", "expected one of roofline, analytic, simulate"},
                {"gpt2", "gpt2 is a network: model: gpt2, or --model gpt2"},
                {"h100", "--hardware h100"},
                {"train.py", "ridgeline predict --record train.py"},
                {"scenarios/bert-large-fp32.yaml h100", "ridgeline compare takes several"}},
               "predict ");
}

TEST(Mistakes, InValuesAreToldWithTheValue) {
  all_are_told({{"--batch -3", "expected 1 to 1048576"},
                {"--batch 8.5", "expected a whole number (1 to 1048576)"},
                {"--seq 1,024", "write 1024"},
                {"--seq 1k", "write 1000 or 1024"},
                {"--seq 4096", "gpt2 has positions for 1024 only"},
                {"--lora yes", "expected a whole number (1 to 65536)"},
                {"--lora 0", "expected 1 to 65536"},
                {"--precision float16", "did you mean amp-fp16? Allowed: fp32, tf32"},
                {"--precision fp16", "did you mean amp-fp16?"},
                {"--precision BF16", "did you mean bf16?"},
                {"--precision mixed", "did you mean amp-bf16?"},
                {"--precision int8", "did you mean bf16 with --qlora 16?"},
                {"--precision fp8", "did you mean bf16 with --set training.fp8=tensorwise?"},
                {"--optimizer adamW", "did you mean adamw?"},
                {"--optimizer paged_adamw_8bit", "did you mean adamw-8bit?"},
                {"--optimizer sophia", "expected one of adamw, adam, sgd"},
                {"--attention flash_attention_2", "did you mean flash?"},
                {"--checkpointing true", "did you mean block?"},
                {"--fsdp", "--cluster hgx-h200"},
                {"--cluster rtx3090-x2-pcie", "leave hardware out"},
                {"--prompt 128 --optimizer sgd", "leave one out"},
                {"--set batch=8", "did you mean training.micro_batch?"},
                {"--set l2.capacity=80MiB", "did you mean hardware.l2?"},
                {"--set hardware.memory=80GB", "did you mean dram.capacity?"},
                {"--set hardware.dram.bandwidth=4TB", "expected a number with a unit (MB/s, GB/s, TB/s"},
                {"--set training.lr=1", "leave it out"},
                {"--set bf16", "expected KEY=VALUE, such as training.micro_batch=8"}},
               "predict --model gpt2 --hardware h100 --batch 8 --seq 64 ");
}

TEST(Mistakes, InOtherCommandsAreToldWithAnExample) {
  all_are_told(
      {{"fits llama-3.1-8b", "for example: ridgeline fits llama-3.1-8b rtx3090"},
       {"fits rtx3090 llama-3.1-8b", "the network comes first: ridgeline fits llama-3.1-8b rtx3090"},
       {"fits llama 3.1 8b rtx3090", "quote names with blanks"},
       {"fits llama-3.1-8b rtx3090 --lora 16", "did you mean --rank?"},
       {"fit gpt2", "gpt2 is a network"},
       {"fit gpt2 h100", "for example: ridgeline fit --model gpt2"},
       {"fit --model gpt2 --hardware h100", "training.sequence_length: missing; give --seq 1024"},
       {"plan --model gpt2 --cluster hgx-h100 --seq 1024", "--gpus 8"},
       {"plan --model gpt2 --cluster hgx-h100 --seq 1024 --gpus 8", "--batch N"},
       {"plan --model gpt2 --cluster hgx-h100 --seq 1024 --gpus eight", "--gpus eight: expected a number"},
       {"compare --model gpt2 --batch 8 --seq 1024 --hardware h100", "name another GPU"},
       {"compare --model gpt2 --batch 8 --seq 1024 --hardware h100 --with bf16", "--with bf16: expected KEY=VALUE"},
       {"compare --model gpt2 --batch 8 --seq 1024 h100 a100", "did you mean nvidia-a100"},
       {"compare --batch 8 --seq 1024 h100 rtx4090", "model: missing; give --model gpt2"},
       {"sweep", "for example: ridgeline sweep scenarios/sweeps"},
       {"sweep --model gpt2", "for example: ridgeline sweep"},
       {"sweep scenarios/bert-large-fp32.yaml", "is a scenario; type: ridgeline predict"},
       {"predict scenarios/sweeps/six-gpus.yaml", "is a sweep; type: ridgeline sweep"},
       {"predict hw/nvidia-t4.yaml", "is a GPU's description; type: ridgeline hardware"},
       {"predict models/gpt2.yaml", "is a network; type: ridgeline models"},
       {"kernels", "for example: echo"},
       {"replay", "for example: ridgeline replay"},
       {"replay README.md --hardware h100", "a trace of PyTorch's profiler"},
       {"memory README.md", "a memory snapshot of PyTorch"},
       {"hardware h100 a100", "one word too many"},
       {"exercise one", "expected a number"},
       {"calibrate", "for example: ridgeline calibrate"},
       {"serve 8137", "one word too many"},
       {"Predict", "did you mean 'predict'?"},
       {"predcit", "did you mean 'predict'?"},
       {"predict --model gpt2 --hardware h100 a100-80gb", "ridgeline compare takes several"},
       {"predict --model gpt2 --hardware h100 --compile true", "leave true out"},
       {"predict --model gpt2 --hardware h100 --tokens 15B", "such as 15e9"},
       {"predict --model gpt2 --hardware h100 --generate 128", "--prompt 1024"},
       {"predict --model gpt2 --hardware h100 --tokens 0", "expected a number above 0"},
       {"gpt2", "gpt2 is a network: ridgeline predict --model gpt2 --hardware h100"},
       {"simulate", "begin with: ridgeline predict --model gpt2 --hardware h100"},
       {"--model gpt2", "--model goes behind a command: ridgeline predict --model"},
       {"--predict", "begin with: ridgeline predict"}});
}

struct BadFile {
  const char *text, *fix;
};

TEST(Mistakes, InFilesAreToldWithTheLineAndTheKey) {
  const std::string file = temporary_path("mistake") + ".yaml";
  const std::string head = "model: gpt2\nhardware: h100\n";
  for (const BadFile& one : std::initializer_list<BadFile>{
           {"training:\n\tmicro_batch: 8\n", "indent with spaces, not tabs"},
           {"training:\n  batch_size: 8\n", ":4:3: training.batch_size: unknown key; did you mean micro_batch?"},
           {"training:\n  learning_rate: 3e-4\n", "leave it out"},
           {"micro_batch: 8\n", "did you mean training.micro_batch? Two blanks before it"},
           {"gpu: h100\n", "did you mean hardware?"},
           {"", "training: missing; write training: {micro_batch: 8, sequence_length: 1024}, or give --batch 8"},
           {"training: {sequence_length: 64}\n", "write micro_batch: 8 below training:, or give --batch 8"},
           {"training: {micro_batch: eight, sequence_length: 64}\n", "expected a whole number"},
           {"training: {micro_batch: 8, sequence_length: 64, lora: 16}\n", "training.lora: {rank: ...}"},
           {"training: {micro_batch: 8, sequence_length: 64, optimizer: adamw_torch}\n", "did you mean adamw?"},
           {"training: {micro_batch: 8, sequence_length: 64, compile: yes}\n", "expected true or false"},
           {"training: {micro_batch: 8, sequence_length: 64, parallel: {data: 8}}\n", "name a cluster"},
           {"training: {micro_batch: 8, sequence_length: 64}\ninference: {prompt_length: 8}\n", "leave out training"},
           {"training: [1\n", "close the ["}}) {
    std::ofstream(file) << head << one.text;
    const ProgramRun run = run_program("predict " + file);
    EXPECT_EQ(run.exit_code, 2) << one.text;
    EXPECT_THAT(run.err, HasSubstr(one.fix)) << one.text;
  }
  std::filesystem::remove(file);
}

TEST(Mistakes, FlagsThatContradictAreToldAndTheLastOneCounts) {
  const std::string asked = "predict --model gpt2 --hardware h100 --batch 1 --seq 64 --no-advice ";
  for (const auto& [typed, told] :
       {std::pair("--lora 16 --full", "--full replaces --lora"),
        std::pair("--full --lora 16", "--lora replaces --full"),
        std::pair("--lora 8 --qlora 16", "--qlora replaces --lora"),
        std::pair("--set training.micro_batch=2 --batch 4", "--batch 4 replaces --set"),
        std::pair("--batch 4 --set training.micro_batch=2", "--set training.micro_batch=2 replaces --batch 4")}) {
    const ProgramRun run = run_program(asked + typed);
    EXPECT_EQ(run.exit_code, 0) << typed << run.err;
    EXPECT_THAT(run.err, HasSubstr(told)) << typed;
  }
  EXPECT_THAT(run_program(asked + "--full --lora 16").out, HasSubstr("adapters of rank 16"));
  EXPECT_THAT(run_program(asked + "--lora 16 --full").out, Not(HasSubstr("adapters")));
  EXPECT_EQ(run_program(asked).err, "");
}

TEST(Mistakes, SizesThatNobodyNamedAreAssumedAndSaid) {
  const ProgramRun run = run_program("predict --model gpt2 --hardware h100 --no-advice");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("fp32, 1 x 1024 tokens because nothing was said"));
  EXPECT_THAT(run.out, HasSubstr("--batch and --seq name other sizes"));
  EXPECT_THAT(run_program("predict --model bert-base --hardware h100 --batch 2 --no-advice").out,
              HasSubstr(", 512 tokens because nothing was said"));
  EXPECT_THAT(run_program("predict --model gpt2 --hardware h100 --batch 2 --seq 64 --precision fp32 --no-advice").out,
              Not(HasSubstr("nothing was said")));
}

}  // namespace
}  // namespace ridgeline
