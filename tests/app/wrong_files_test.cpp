// A file that a command cannot use is called by what it is, with the command line to type; its bytes are never printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

struct WrongFile {
  std::string name, contents, what, type;  ///< `type`: what the sentence tells to type or do; "" where there is nothing
  std::vector<std::string> commands;
};

std::string page(const std::string& body) { return "<!DOCTYPE html>\n<html><body>" + body + "</body></html>\n"; }

const std::string kOutOfMemory =
    "step 1\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 10.76 GiB total capacity; 9.74 GiB "
    "already allocated; 2.38 MiB free; 9.84 GiB reserved in total by PyTorch)\n";
const std::string kSummary = "|     PyTorch CUDA memory summary, device ID 0     |\n| Allocated memory | Cur Usage |\n";

const std::string kPredict = "predict", kModel = "predict --hardware nvidia-t4 --batch 1 --seq 16 --model",
                  kChip = "predict --model gpt2 --batch 1 --seq 16 --hardware", kMemory = "memory",
                  kReplay = "replay --hardware nvidia-t4", kFrom = "predict --hardware nvidia-t4 --from",
                  kKernels = "kernels --hardware nvidia-t4", kCollectives = "collectives --cluster p5";
const std::string kTrace = R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})";
const std::string kConfig = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2})";
const std::string kSnapshot = "\x80\x02}q\0(X\x08\0\0\0segmentsq\x01]q\x02X\x0a\0\0\0total_sizeq\x03K\x01u."s;
const std::vector<WrongFile> kWrongFiles{
    {"scenario.yaml",
     "hardware: nvidia-t4\nmodel: gpt2\ntraining: {micro_batch: 1}\n",
     "is a scenario",
     "ridgeline predict",
     {kMemory, kModel, kChip, kFrom, kKernels}},
    {"sweep.yaml",
     "scenario: {model: gpt2}\naxes: {model: [gpt2]}\n",
     "is a sweep",
     "ridgeline sweep",
     {kPredict, kMemory, kReplay}},
    {"chip.yaml",
     "title: x\nsm: {count: 40}\ndram: {bandwidth: 1}\n",
     "is a GPU's description",
     "ridgeline hardware",
     {kPredict, kModel, kMemory}},
    {"cluster.yaml",
     "gpu: nvidia-t4\nnodes: 1\ngpus: 4\n",
     "is a cluster's description",
     "ridgeline hardware",
     {kCollectives, kPredict, kChip, kMemory}},
    {"net.yaml",
     "family: gpt2\nlayers: 2\nhidden: 64\n",
     "is a network",
     "ridgeline models",
     {kPredict, kChip, kMemory}},
    {"config.json",
     kConfig,
     "is a network's configuration of Transformers (llama)",
     "ridgeline models",
     {kPredict, kChip, kMemory, kReplay, kFrom}},
    {"unet.json",
     R"({"_class_name": "UNet2DConditionModel", "sample_size": 64})",
     "is a network's configuration of diffusers",
     "ridgeline models",
     {kPredict, kChip, kMemory}},
    {"deepspeed.json",
     R"({"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4})",
     "is a training configuration (DeepSpeed)",
     "ridgeline predict --from",
     {kPredict, kModel, kMemory}},
    {"weights.safetensors",
     "\x20\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}"s,
     "holds weights",
     "config.json",
     {kModel, kMemory, kPredict, kKernels}},
    {"index.json",
     R"({"metadata": {}, "weight_map": {"a": "b"}})",
     "is an index of a checkpoint's weights",
     "config.json",
     {kModel, kPredict}},
    {"tokenizer.json",
     R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": null})",
     "is a tokenizer's file",
     "config.json",
     {kModel, kFrom}},
    {"generation_config.json",
     R"({"eos_token_id": 2, "transformers_version": "4.40"})",
     "is a generation_config.json",
     "config.json",
     {kModel, kPredict}},
    {"adapter_config.json",
     R"({"peft_type": "LORA", "r": 8})",
     "is an adapter_config.json of PEFT",
     "--lora",
     {kModel, kFrom}},
    {"model.gguf", "GGUF\3\0\0\0\0\0\0\0"s, "holds weights of llama.cpp", "config.json", {kModel, kMemory}},
    {"model.bin",
     "PK\3\4xxxxxxxxxxxxxxxxxxxxxxxxxxarchive/data.pkl torch._utils\0"s,
     "is a checkpoint of PyTorch",
     "config.json",
     {kModel, kMemory}},
    {"snapshot.pickle",
     kSnapshot,
     "is a memory snapshot of PyTorch",
     "ridgeline memory",
     {kPredict, kReplay, kModel, kKernels}},
    {"old.pickle",
     "(dp0\nVsegments\np1\n(lp2\nVtotal_size\np3\nI1\ns.",
     "is a memory snapshot of PyTorch",
     "ridgeline memory",
     {kPredict, kReplay}},
    {"other.pkl", "\x80\x04}q\0."s, "is a pickle of Python", "_dump_snapshot", {kMemory, kReplay}},
    {"trace.json", kTrace, "is a trace of PyTorch's profiler", "ridgeline replay", {kMemory, kModel, kChip, kFrom}},
    {"events.json",
     R"([{"ph": "X", "name": "a", "ts": 1, "dur": 1}])",
     "is a Chrome trace",
     "ridgeline replay",
     {kMemory, kModel}},
    {"execution.json",
     R"({"schema": "1.1", "nodes": []})",
     "is an execution trace of PyTorch",
     "ridgeline replay",
     {kMemory, kModel}},
    {"run.nsys-rep",
     "\1\2\0\3"s,
     "is a report of Nsight Systems",
     "nsys export --type sqlite",
     {kReplay, kPredict, kMemory}},
    {"run.ncu-rep", "NVR\0"s, "is a report of Nsight Compute", "ncu --import", {kReplay, kKernels}},
    {"ncu.csv",
     "\"ID\",\"Process ID\",\"Kernel Name\"\n",
     "is a table of Nsight Compute",
     "ridgeline kernels",
     {kReplay, kMemory}},
    {"nsys.csv",
     "Time (%),Total Time (ns),Name\n",
     "is a table of nsys stats",
     "ridgeline replay",
     {kMemory, kModel, kPredict}},
    {"train.log", kOutOfMemory, "is an out-of-memory text of PyTorch", "ridgeline memory", {kPredict, kReplay, kFrom}},
    {"summary.txt", kSummary, "is a memory_summary() of PyTorch", "ridgeline memory", {kPredict, kReplay}},
    {"run.log", "step 1\nstep 2\n", "is a log", "memory reads a history", {kMemory}},
    {"viz.html",
     page("add_local_files([{\"name\": \"s\", \"base64\": \"gAJ9\"}])"),
     "is a page of PyTorch's memory viewer",
     "ridgeline memory",
     {kPredict, kReplay}},
    {"error.json", page("404"), "is a web page, not the file itself", "download", {kModel, kReplay, kMemory, kFrom}},
    {"missing.json", "Entry not found", "is a server's error message", "download", {kModel, kReplay}},
    {"pointer.json",
     "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
     "is a pointer of Git LFS",
     "git lfs pull --include",
     {kModel, kReplay, kMemory, kKernels}},
    {"all.zip", "PK\3\4xxxxxxxxxxxxxxxxxxxxxxxxxxtrace.json\0"s, "is a zip archive", "unzip", {kReplay, kModel}},
    {"all.tar",
     "x.json" + std::string(251, '\0') + "ustar  " + std::string(100, '\0'),
     "is a tar archive",
     "tar -xf",
     {kReplay, kMemory, kKernels}},
    {"x.xz",
     "\xfd"
     "7zXZ\0\0"s,
     "is a file compressed by xz",
     "xz -dk",
     {kReplay, kMemory}},
    {"x.zst", "\x28\xb5\x2f\xfd\0\0"s, "is a file compressed by Zstandard", "zstd -d", {kReplay, kModel}},
    {"x.7z", "7z\xbc\xaf\x27\x1c\0"s, "is a 7-Zip archive", "7z x", {kReplay}},
    {"wide.yaml", "\xff\xfeh\0a\0r\0d\0w\0a\0r\0e\0"s, "holds text in UTF-16", "iconv -f UTF-16", {kPredict, kChip}},
    {"narrow.json", "{\0\"\0m\0o\0d\0e\0l\0\"\0:\0"s, "holds text in UTF-16", "iconv -f UTF-16", {kModel}},
    {"lib.so",
     "\x7f"
     "ELF\2\1\1\0"s,
     "is a program or library",
     "",
     {kPredict, kModel, kKernels, kCollectives}},
    {"plot.png", "\x89PNG\r\n\x1a\n\0"s, "is an image", "", {kPredict, kModel, kMemory, kKernels}},
    {"photo.jpg", "\xff\xd8\xff\xe0\0"s, "is an image", "", {kReplay}},
    {"book.ipynb", R"({"cells": [], "nbformat": 4})", "is a notebook", "jupyter nbconvert", {kPredict, kFrom}},
    {"train.py",
     "import torch\ndef main(): pass\n",
     "is a Python program",
     "ridgeline predict --record",
     {kPredict, kReplay, kFrom}},
    {"empty.yaml",
     "",
     "empty",
     "written to the end",
     {kPredict, kModel, kMemory, kReplay, kKernels, kCollectives, kFrom}},
    {"random.bin",
     "\1\2\3\0\5\xfe\xff"s,
     "is a binary file of no kind that is known",
     "",
     {kPredict, kModel, kMemory, kReplay}},
    {"db.sqlite", "SQLite format 3\0rest"s, "is an SQLite database", "", {kPredict, kMemory}},
    {"calculon.json",
     R"({"matrix": {"float16": {"tflops": 312}}, "mem1": {"GiB": 80}})",
     "is a system of Calculon",
     "ridgeline hardware",
     {kPredict, kModel, kMemory}},
    {"astra.yml",
     "topology: [ Switch ]\nnpus_count: [ 8 ]\n",
     "is a network of ASTRA-sim",
     "ridgeline hardware",
     {kPredict, kModel}},
    {"cases.jsonl",
     "{\"op\":\"mm\",\"params\":{\"m\":1}}\n",
     "is a list of kernel cases",
     "ridgeline kernels",
     {kPredict, kMemory}},
    {"history.csv",
     "action,addr,size,stream\nalloc,7f00,512,0\n",
     "is a history of allocations",
     "ridgeline memory",
     {kPredict, kReplay}},
};

std::string controls_of(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t') out += c;
  return out;
}

class WrongFiles : public testing::TestWithParam<WrongFile> {};

TEST_P(WrongFiles, AreCalledByWhatTheyAre) {
  const WrongFile& wrong = GetParam();
  const std::string path = temporary_path(wrong.name);
  std::ofstream(path, std::ios::binary) << wrong.contents;
  for (const std::string& command : wrong.commands) {
    const ProgramRun run = run_program(command + " " + path);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_EQ(run.out, "") << command;
    EXPECT_THAT(run.err, ::testing::StartsWith("ridgeline: " + path + ": ")) << command;
    EXPECT_THAT(run.err, HasSubstr(wrong.what)) << command;
    EXPECT_THAT(run.err, HasSubstr(wrong.type)) << command;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(controls_of(run.err), "") << "control characters of the file are printed back by " << command;
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Every, WrongFiles, testing::ValuesIn(kWrongFiles),
                         [](const testing::TestParamInfo<WrongFile>& one) {
                           std::string name = one.param.name;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(WrongFolders, SayWhichFileIsMeant) {
  const std::filesystem::path folder = temporary_path("folder");
  std::filesystem::create_directories(folder / "plugins");
  std::ofstream(folder / "plugins" / "host.1.pt.trace.json") << "{}";
  const ProgramRun run = run_program("replay --hardware nvidia-t4 " + folder.string());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("is a folder of traces (1 trace); type: ridgeline replay " + folder.string() +
                                 "/plugins/host.1.pt.trace.json"));
  std::filesystem::remove_all(folder);
}

// A file that its command takes keeps the reader's own message.
TEST(RightFiles, WithAMistakeAreToldTheMistake) {
  const std::string path = temporary_path("mistake.yaml");
  std::ofstream(path) << "hardware: nvidia-t4\nmodel: gpt2\ntraining: {micro_batch: none}\n";
  EXPECT_THAT(run_program("predict " + path).err, HasSubstr("micro_batch"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ridgeline
