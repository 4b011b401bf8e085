#include "sim/recognition/file_kinds.h"

#include <fmt/format.h>

#include <stdexcept>

namespace ridgeline::recognition {
namespace {

constexpr std::string_view kConfigBeside = "ridgeline models {folder}/config.json";
constexpr std::string_view kGiveConfig = "a network is given by its config.json";

const std::vector<FileKind> kRows{
    // Ridgeline's own
    {"scenario", "a scenario", "predict replay fit plan compare", "ridgeline predict {}"},
    {"sweep", "a sweep", "sweep", "ridgeline sweep {}"},
    {"exercise", "an exercise", "", "", "ridgeline exercise lists those shipped"},
    {"chip", "a GPU's description", "hardware --hardware --recorded-on", "ridgeline hardware {}",
     "in a question: --hardware {}"},
    {"cluster", "a cluster's description", "hardware --cluster", "ridgeline hardware {}",
     "in a question: --cluster {}"},
    {"host", "a host's description", "--host", "ridgeline predict SCENARIO --host {}"},
    {"software", "a software version's description", "--software", "ridgeline predict SCENARIO --software {}"},
    {"network", "a network", "--model", "ridgeline models {}", "in a question: --model {}"},
    {"points", "holds the finished points of a sweep", "", "ridgeline sweep SWEEP --points {}"},
    {"probe", "a result of ./dev probe", "calibrate", "ridgeline calibrate {} --hardware GPU"},
    {"op-trace", "an op trace of Ridgeline", "replay predict fit compare --rank", "ridgeline replay {} --hardware GPU"},
    {"kernel-cases", "a list of kernel cases", "kernels --kernels", "ridgeline kernels {} --hardware GPU"},
    {"collective-cases", "a list of collectives", "collectives", "ridgeline collectives {} --cluster CLUSTER"},
    {"answer", "an answer that Ridgeline printed as JSON", "", "", "its question is below \"question\" in it"},
    {"page", "a page that ridgeline --html wrote", "", "", "a browser shows it"},
    // networks and what lies beside them
    {"config", "a network's configuration of Transformers", "--model", "ridgeline models {}",
     "predict it with: ridgeline predict --model {} --hardware GPU"},
    {"diffusers", "a network's configuration of diffusers", "--model", "ridgeline models {}"},
    {"pipeline", "the index of a pipeline of diffusers", "", "ridgeline models {folder}/unet/config.json",
     "each network of the pipeline has a config.json in a folder of its own"},
    {"params", "params.json of Llama's first release", "", "", "Transformers' config.json of the same network is read"},
    {"generation", "a generation_config.json, which has no sizes", "", kConfigBeside, kGiveConfig},
    {"preprocessor", "a preprocessor's configuration, which has no sizes", "", kConfigBeside, kGiveConfig},
    {"tokenizer", "a tokenizer's file, which has no sizes", "", kConfigBeside, kGiveConfig},
    {"adapter", "an adapter_config.json of PEFT", "", "ridgeline predict --model NETWORK --hardware GPU --lora RANK",
     "its r is the rank"},
    {"modules", "a list of modules of sentence-transformers", "", kConfigBeside, kGiveConfig},
    {"weight-index", "an index of a checkpoint's weights", "", kConfigBeside, kGiveConfig},
    {"safetensors", "holds weights (safetensors)", "", kConfigBeside, kGiveConfig},
    {"gguf", "holds weights of llama.cpp (GGUF)", "", "",
     "a network is given by its config.json, which lies beside the "
     "original weights"},
    {"checkpoint", "a checkpoint of PyTorch", "", kConfigBeside, kGiveConfig},
    {"pickle", "a pickle of Python that holds no memory snapshot", "", "",
     "torch.cuda.memory._dump_snapshot() writes snapshots"},
    {"onnx", "a network as ONNX", "", "", kGiveConfig},
    {"arrays", "holds arrays of NumPy", "", "", "no command reads arrays"},
    {"hdf5", "holds weights or data (HDF5)", "", "", kGiveConfig},
    {"parquet", "a data set (Parquet or Arrow)", "", "", "no command reads data: --seq says the length of a sequence"},
    {"dataset", "a data set, a sample a line", "", "", "no command reads data: --seq says the length of a sequence"},
    {"trainer-state", "a trainer_state.json, the log of a training run", "", "",
     "training_args.json or the tool's configuration is read by --from"},
    // training
    {"training", "a training configuration", "--from", "ridgeline predict --from {} --hardware GPU"},
    {"python", "a Python program", "--record", "ridgeline predict --record {} --hardware GPU"},
    {"script", "a shell script without arguments of a training program that is known", "", "",
     "ridgeline predict --from reads a launch script of Megatron-LM or of a Trainer"},
    {"notebook", "a notebook", "", "jupyter nbconvert --to script {}",
     "then ridgeline predict --record {stem}.py --hardware GPU"},
    // recordings
    {"kineto", "a trace of PyTorch's profiler", "replay predict fit compare --rank",
     "ridgeline replay {} --hardware GPU"},
    {"chrome-trace", "a Chrome trace", "replay predict fit compare --rank", "ridgeline replay {} --hardware GPU"},
    {"execution-trace", "an execution trace of PyTorch", "replay predict fit compare --rank",
     "ridgeline replay {} --hardware GPU"},
    {"memory-timeline", "a memory timeline of PyTorch's profiler, sums without allocations", "", "",
     "torch.cuda.memory._dump_snapshot() writes what ridgeline memory reads"},
    {"nsys-report", "a report of Nsight Systems", "", "nsys export --type sqlite -o {stem}.sqlite {}",
     "then ridgeline replay {stem}.sqlite --hardware GPU"},
    {"nsys-sqlite", "an export of Nsight Systems (SQLite)", "replay predict fit compare --rank",
     "ridgeline replay {} --hardware GPU"},
    {"nsys-csv", "a table of nsys stats", "replay", "ridgeline replay {} --hardware GPU"},
    {"ncu-report", "a report of Nsight Compute", "", "ncu --import {} --csv --page raw > {stem}.csv",
     "then ridgeline kernels {stem}.csv --hardware GPU"},
    {"ncu-csv", "a table of Nsight Compute", "kernels", "ridgeline kernels {} --hardware GPU"},
    {"tensorboard", "an event file of TensorBoard", "", "",
     "ridgeline replay reads the traces beside it, which end in .pt.trace.json"},
    {"nvprof", "a profile of nvprof", "", "", "a trace of torch.profiler is read by ridgeline replay"},
    {"sqlite", "an SQLite database of no kind that is known", "", "", ""},
    // memory
    {"history", "a history of allocations", "memory", "ridgeline memory {}"},
    {"snapshot", "a memory snapshot of PyTorch", "memory", "ridgeline memory {}"},
    {"memory-page", "a page of PyTorch's memory viewer", "memory", "ridgeline memory {}"},
    {"out-of-memory", "an out-of-memory text of PyTorch", "memory", "ridgeline memory {}"},
    {"memory-summary", "a memory_summary() of PyTorch", "memory", "ridgeline memory {}"},
    {"memory-stats", "holds memory_stats() of PyTorch", "memory", "ridgeline memory {}"},
    {"plain-out-of-memory", "a log that ends out of memory without PyTorch's figures", "", "",
     "ridgeline fit says the largest batch that fits"},
    // other simulators
    {"calculon", "a system of Calculon", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"calculon-model", "a network of Calculon", "", "", kGiveConfig},
    {"calculon-run", "an execution of Calculon", "", "",
     "ridgeline predict takes the same as flags: ridgeline predict --help"},
    {"llmcompass", "a system of LLMCompass", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"simumax", "a system of SimuMax", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"simumax-strategy", "a strategy of SimuMax", "", "",
     "ridgeline predict takes the same as flags: ridgeline predict --help"},
    {"simumax-model", "a network of SimuMax", "", "", kGiveConfig},
    {"genz", "holds systems of GenZ", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"llmservingsim", "a configuration of LLMServingSim", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"astra-network", "a network of ASTRA-sim", "hardware", "ridgeline hardware {} > {stem}.cluster.yaml",
     "then --cluster {stem}.cluster.yaml takes it"},
    {"astra-system", "a system of ASTRA-sim", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    {"gpgpusim", "a configuration of GPGPU-Sim (Accel-Sim)", "hardware", "ridgeline hardware {} > {stem}.chip.yaml",
     "then --hardware {stem}.chip.yaml takes it"},
    // what the system says
    {"nvidia-smi", "holds output of nvidia-smi", "", "ridgeline hardware", "lists the GPUs by name"},
    {"log", "a log", "", "", "no out-of-memory text of PyTorch is in it"},
    {"table", "a table (CSV) of no kind that is known", "", "", ""},
    {"text", "text of no kind that is known", "", "", ""},
    // containers and damage
    {"zip", "a zip archive", "", "unzip {}", "then give a file that was in it"},
    {"tar", "a tar archive", "", "tar -xf {}", "then give a file that was in it"},
    {"gzip", "a file compressed by gzip", "", "gzip -dk {}", "then give the file that comes out"},
    {"xz", "a file compressed by xz", "", "xz -dk {}", "then give the file that comes out"},
    {"zstd", "a file compressed by Zstandard", "", "zstd -d {}", "then give the file that comes out"},
    {"bzip2", "a file compressed by bzip2", "", "bzip2 -dk {}", "then give the file that comes out"},
    {"lz4", "a file compressed by LZ4", "", "lz4 -d {}", "then give the file that comes out"},
    {"7z", "a 7-Zip archive", "", "7z x {}", "then give a file that was in it"},
    {"rar", "a RAR archive", "", "unrar x {}", "then give a file that was in it"},
    {"server-error", "a server's error message, not the file itself", "", "",
     "download the raw file again: the name may be wrong, or the file asks for a login"},
    {"git-lfs", "a pointer of Git LFS, not the file itself", "", "git lfs pull --include {}"},
    {"web-page", "a web page, not the file itself", "", "", "download the raw file again"},
    {"xml", "holds XML", "", "", ""},
    {"utf-16", "holds text in UTF-16", "", "iconv -f UTF-16 -t UTF-8 {} > {stem}.utf8", "then give {stem}.utf8"},
    {"executable", "a program or library, not text", "", "", ""},
    {"image", "an image", "", "", "no command reads images"},
    {"pdf", "a PDF document", "", "", "no command reads documents"},
    {"sound", "a sound or film", "", "", "no command reads those"},
    {"binary", "a binary file of no kind that is known", "", "", ""},
    {"empty", "empty", "", "", "was it written to the end?"},
    // folders
    {"trace-folder", "a folder of traces", "", "ridgeline replay {first} --hardware GPU"},
    {"model-folder", "a folder of a network", "", "ridgeline models {}/config.json"},
    {"pipeline-folder", "a folder of a pipeline of diffusers", "", "ridgeline models {first}"},
    {"checkpoint-folder", "a folder of checkpoints", "", "ridgeline models {first}"},
    {"snapshot-folder", "a folder of memory snapshots", "", "ridgeline memory {first}"},
    {"weights-folder", "a folder of weights without a config.json", "", "", kGiveConfig},
    {"folder", "a folder, not a file", "", "", ""},
};

}  // namespace

const std::vector<FileKind>& file_kinds() { return kRows; }

const FileKind& file_kind(std::string_view name) {
  for (const FileKind& kind : file_kinds())
    if (kind.name == name) return kind;
  throw std::logic_error(fmt::format("no kind of file is called {}", name));
}

}  // namespace ridgeline::recognition
