#include "sim/app/command_examples.h"

#include <array>
#include <utility>

namespace ridgeline::app {
namespace {

// clang-format off
constexpr auto kExamples = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"predict", "ridgeline predict --model llama-3.1-8b --hardware rtx3090 --batch 1 --seq 1024 --lora 16"},
    {"fit", "ridgeline fit --model gpt2 --hardware h100 --seq 1024"},
    {"fits", "ridgeline fits llama-3.1-8b rtx3090"},
    {"compare", "ridgeline compare --model gpt2 --batch 8 --seq 1024 h100 a100-80gb rtx4090"},
    {"sweep", "ridgeline sweep scenarios/sweeps/six-gpus.yaml"},
    {"plan", "ridgeline plan --model llama-3.1-8b --cluster hgx-h100 --gpus 8 --batch 64 --seq 4096"},
    {"exercise", "ridgeline exercise 1"},
    {"kernels", R"(echo '{"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":4096,"layout":"nt"}}' | ridgeline kernels --hardware h100)"},
    {"collectives", R"(echo '{"op":"all_reduce","bytes":1000000000}' | ridgeline collectives --cluster hgx-h100)"},
    {"memory", "ridgeline memory snapshot.pickle --capacity \"24 GiB\""},
    {"replay", "ridgeline replay trace.json --hardware h100"},
    {"calibrate", "ridgeline calibrate result.json --hardware h100 --dry-run"},
    {"hardware", "ridgeline hardware h100"},
    {"models", "ridgeline models llama-3.1-8b"},
    {"schema", "ridgeline schema scenario"},
    {"serve", "ridgeline serve"},
});
// clang-format on

}  // namespace

std::string_view command_example(std::string_view command) {
  for (const auto& [name, example] : kExamples)
    if (name == command) return example;
  return "";
}

}  // namespace ridgeline::app
