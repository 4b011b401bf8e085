// Every broken scenario gives one clear message with its place, exit code 2 and no output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "sim/units/utf8.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> broken_scenarios() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/tests/bad_inputs/scenario"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// The fragment after "# expect:" on the first line; the file's own name where there is none.
std::string expected_fragment(const std::string& name) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/tests/bad_inputs/scenario/" + name);
  std::string line;
  std::getline(file, line);
  const std::string mark = "# expect: ";
  return line.starts_with(mark) ? line.substr(mark.size()) : name;
}

class BrokenScenario : public testing::TestWithParam<std::string> {};

TEST_P(BrokenScenario, IsRefusedInOneLineThatNamesTheMistake) {
  const ProgramRun run = run_program("predict tests/bad_inputs/scenario/" + GetParam());
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(expected_fragment(GetParam())));
  EXPECT_THAT(run.err, ::testing::StartsWith("ridgeline: "));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}
INSTANTIATE_TEST_SUITE_P(EveryFile, BrokenScenario, testing::ValuesIn(broken_scenarios()), test_name);

TEST(BrokenArguments, AreRefusedInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"predict no-such-file.yaml", "no-such-file.yaml"},
      {"predict scenarios/bert-large-fp32.yml", "bert-large-fp32"},
      {"predict", "hardware"},
      {"compare --model gpt2 nvidia-t4 nvidia-l4 --batch 4",
       "training.sequence_length: missing; give --seq 1024 (tokens in a sequence)"},
      {"predict scenarios/bert-large-fp32.yaml --engine magic", "analytic"},
      {"predict scenarios/bert-large-fp32.yaml --format xml", "format"},
      {"predict scenarios/bert-large-fp32.yaml --set training.micro_batch", "="},
      {"predict scenarios/bert-large-fp32.yaml --set training.micro_batch=many", "--set training.micro_batch=many"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.dram.bandwith='4 TB/s'", "bandwidth"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.dram.bandwidth=4", "TB/s"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.sm.count=0", "sm.count"},
      {"predict scenarios/bert-large-fp32.yaml --set model.vocabulary=-1", "vocabulary"},
      {"predict scenarios/bert-large-fp32.yaml --batch 0", "--batch 0"},
      {"predict scenarios/bert-large-fp32.yaml --nonsense", "nonsense"},
      {"predict scenarios/bert-large-fp32.yaml --on-every-gpu --sensitivity", "--format json"},
      {"predict scenarios/bert-large-fp32.yaml --on-every-gpu --memory-report", "--on-every-gpu"},
      {"predict --model gpt2 --cluster h200-x2 --batch 1 --seq 128 --on-every-gpu", "sweep over cluster.gpu"},
      {"predict scenarios/bert-large-fp32.yaml --hardwar nvidia-t4",
       "--hardwar is no option of predict; did you mean --hardware?"},
      {"sweep scenarios/sweeps/six-gpus.yaml -x", "-x is no option of sweep; for example: ridgeline sweep"},
      {"--versio", "--versio is no option of ridgeline; did you mean --version?"},
      {"schema scenaro", "did you mean scenario?"},
      {"predikt x", "did you mean 'predict'"},
      {"hlep", "did you mean 'help'"},
      {"train", "unknown command 'train'; begin with: ridgeline predict --model gpt2"},
      {"predict --lroa 8", "did you mean --lora?"},
      {"predict --batch-size=8", "--batch-size is no option of predict; did you mean --batch?"},
      {"predict --gpu nvidia-t4", "did you mean --hardware?"},
      {"predict --max-new-tokens 8", "did you mean --generate?"},
      {"predict --lr 8", "--lr is no option of predict; time and memory of a step do not depend on it"},
      {"predict --epochs 8", "--epochs is no option of predict; time and memory of a step"},
      {"", "a command is missing: begin with: ridgeline predict --model gpt2 --hardware h100"},
      {"predict --model llama-3-8b --hardware nvidia-h200-sxm-141gb --batch 1 --seq 1000000 --precision fp32",
       "the steps launch more than 4,000,000 kernels"},
      {"hardware nvidia-h300", "no GPU of this name is described"},
      {"hardware nvidia-v100", "did you mean nvidia-v100-pcie-32gb, nvidia-v100-sxm2-16gb, nvidia-v100-sxm2-32gb?"},
      {"models bart-base", "save its config.json and give its path"},
      {"models gtp2", "did you mean gpt2?"},
      {"kernels", "hardware"},
      {"kernels --hardware nvidia-h200-sxm-141gb no-such.jsonl", "no-such.jsonl"},
      {"memory no-such.csv", "no-such.csv"},
      {"memory README.md", "README.md"},
      {"memory docs", "docs: is a folder, not a file"},
      {"replay docs --hardware nvidia-t4", "docs: is a folder, not a file"},
      {"kernels --hardware nvidia-t4 docs", "docs: is a folder, not a file"},
      {"calibrate docs --hardware nvidia-t4", "docs: is a folder, not a file"},
      {"sweep docs", "docs: is a folder, not a file"},
      {"models docs/", "is a folder, not a file"},
      {"kernels --hardware nvidia-t4", "standard input: no kernel cases in it"},
      {"kernels --hardware nvidia-t4 /dev/null", "/dev/null: no kernel cases in it"},
      {"replay --hardware nvidia-t4 /dev/null", "/dev/null: a pipe or device"},
  };
  for (const auto& [arguments, fragment] : cases) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr(fragment)) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST(BrokenArguments, AnEndlessLineOfStandardInputIsRefused) {
  const ProgramRun run = run_program("kernels --hardware nvidia-t4 -", std::string(std::size_t{65} << 20, 'x'));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "ridgeline: standard input:1: a line of more than 64 MiB\n");
  EXPECT_EQ(run.out, "");
}

/// A file that lies there as long as the test runs.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, std::string_view contents) : path_(temporary_path(name)) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string contents_of(const std::string& name) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BrokenFiles, OfEveryKindAreRefusedByEveryCommandThatReadsOne) {
  const TemporaryFile files[] = {{"empty", ""},
                                 {"white", " \n\n"},
                                 {"zeros", std::string(16, '\0')},
                                 {"words", "This is: no thing: that anybody reads\n"},
                                 {"list", "[1, 2, 3]\n"},
                                 {"cut-off.json", R"({"traceEvents": [ {"ph": "X")"},
                                 {"cut-off.gz", contents_of("measurements/h200/kernels.jsonl.gz").substr(0, 24)}};
  for (const char* command :
       {"predict", "fit", "compare", "sweep", "replay --hardware nvidia-t4", "memory", "models", "hardware",
        "calibrate --dry-run --hardware nvidia-t4", "kernels --hardware nvidia-t4", "collectives --cluster h200-x2"})
    for (const TemporaryFile& file : files) {
      const ProgramRun run = run_program(std::string(command) + " " + file.path());
      EXPECT_EQ(run.exit_code, 2) << command << " " << file.path() << "\n" << run.err;
      EXPECT_THAT(run.err + run.out, ::testing::AnyOf(HasSubstr(file.path()), HasSubstr("\"error\"")))
          << command << " " << file.path();
    }
}

TEST(BrokenFiles, ThatNestTooDeepOrExpandTooMuchAreRefusedInASentence) {
  const std::string opens(60000, '['), closes(60000, ']');
  std::string objects, ends;
  for (int i = 0; i < 60000; ++i) objects += "{\"a\":", ends += "}";
  std::string blanks;
  {
    boost::iostreams::filtering_ostream out;
    out.push(boost::iostreams::gzip_compressor());
    out.push(boost::iostreams::back_inserter(blanks));
    const std::string line(1 << 16, ' ');
    for (int i = 0; i < 1600; ++i) out << line << '\n';
  }
  const TemporaryFile files[] = {{"open.json", opens},
                                 {"deep.json", R"({"op":"mm","params":)" + opens + closes + "}"},
                                 {"objects.json", objects + "1" + ends},
                                 {"blanks.gz", blanks}};
  for (const char* command :
       {"predict", "replay --hardware nvidia-t4", "memory", "hardware", "models",
        "calibrate --dry-run --hardware nvidia-t4", "kernels --hardware nvidia-t4", "collectives --cluster h200-x2"})
    for (const TemporaryFile& file : files) {
      const ProgramRun run = run_program(std::string(command) + " " + file.path());
      EXPECT_EQ(run.exit_code, 2) << command << " " << file.path() << "\n" << run.err.substr(0, 500);
      EXPECT_THAT(run.err.substr(0, 500), ::testing::Not(HasSubstr("our bug"))) << command << " " << file.path();
    }
}

TEST(Titles, OfAnyKindAreShownHarmlessly) {
  const std::string scenario =
      "title: \"<!-- <script> </script> \\e]0;name\\a \\e[31m ]]> & \\u202e\"\nhardware: nvidia-t4\nmodel: gpt2\n"
      "training: {micro_batch: 1, sequence_length: 64}\n";
  const TemporaryFile file("title.yaml", scenario);
  const std::string page = temporary_path("title.html");
  const ProgramRun run = run_program("predict --no-advice " + file.path() + " --html " + page);
  EXPECT_EQ((run.out + run.err).find('\x1b'), std::string::npos);
  EXPECT_EQ((run.out + run.err).find('\a'), std::string::npos);
  if (run.err.find("built without npm's packages") != std::string::npos) GTEST_SKIP() << "a build without the page";
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::ifstream in(page);
  const std::string html((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(html.find("<!-- <script>"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
}

TEST(BrokenFiles, WhatNoReaderCanUseIsNamedInOneLine) {
  const std::string event = R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, )";
  struct Case {
    const char* command;
    std::string text, expected;
  };
  const std::vector<Case> cases{
      {"memory", "action,addr,size,stream\n", "no allocations after the header"},
      {"memory", "action,addr,size,stream\nexplode,7f00,512,0\n", ":2: unknown action"},
      {"memory", "action,addr,size,stream\nalloc,7f00,-512,0\n", ":2: \"-512\" is not a number of bytes"},
      {"replay --hardware nvidia-t4", event + "\"ts\": 1e300, \"dur\": 1}]}", ":1: \"ts\" of 'aten::mm' is no time"},
      {"replay --hardware nvidia-t4", event + "\"ts\": 1, \"dur\": 1e300}]}",
       ":1: \"dur\" of 'aten::mm' is no duration"},
      {"replay --hardware nvidia-t4", event + "\"ts\": 1, \"dur\": 1}]}", "nothing ran on a GPU"},
      {"memory", "{\"traceEvents\": []}", "ridgeline replay"},
      {"calibrate --dry-run --hardware nvidia-t4", "{\"format\": \"ridgeline-probe\", \"version\": 9}", "version 9"},
      {"predict --hardware nvidia-t4 --batch 1 --seq 16 --model", R"({"model_type": "qwen-9"})", "model_type"},
      {"predict --hardware nvidia-t4 --batch 1 --seq 16 --model", R"({"model_type": "bert", "n": )",
       "a closing bracket missing"}};
  for (const Case& broken : cases) {
    const TemporaryFile file("broken.json", broken.text);
    const ProgramRun run = run_program(std::string(broken.command) + " " + file.path());
    EXPECT_EQ(run.exit_code, 2) << broken.text;
    EXPECT_THAT(run.err, ::testing::StartsWith("ridgeline: " + file.path())) << broken.text;
    EXPECT_THAT(run.err, HasSubstr(broken.expected));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

// Descriptions, recordings and tables: the message names the file and is UTF-8 itself, as is what is printed.
TEST(BrokenFiles, ThatAreNoUtf8AreNamedWhateverReadsThem) {
  const std::string step = " --batch 1 --seq 32 --precision fp32 --no-advice";
  struct Kind {
    std::string shipped, before, behind;  ///< a file, and the words of a command around it
  };
  const std::vector<Kind> kinds{
      {"hw/nvidia-t4.yaml", "predict --model gpt2 --hardware ", step},
      {"models/gpt2.yaml", "predict --hardware nvidia-t4 --model ", step},
      {"models/gpt2.yaml", "models ", ""},
      {"hw/clusters/p5.yaml", "predict --model gpt2 --cluster ", step},
      {"hw/hosts/default.yaml", "predict --model gpt2 --hardware nvidia-t4 --host ", step},
      {"hw/software/pytorch-2.11.yaml", "predict --model gpt2 --hardware nvidia-t4 --software ", step},
      {"scenarios/bert-large-fp32.yaml", "fit ", ""},
      {"scenarios/sweeps/six-gpus.yaml", "sweep ", ""},
      {"hw/probe/results/nvidia-h200-sxm-141gb.json", "calibrate --dry-run --hardware nvidia-h200-sxm-141gb ", ""}};
  for (const Kind& kind : kinds) {
    const std::string whole = contents_of(kind.shipped);
    const std::size_t middle = whole.find(' ', whole.size() / 2);
    for (const char* bytes : {"\xff", "\xc3(", "\xed\xa0\x80", "\xf5\x80\x80\x80"})
      for (const std::size_t place : {std::size_t{1}, middle, whole.size() - 1}) {
        const TemporaryFile file("bytes.yaml", std::string(whole).insert(place, bytes));
        const ProgramRun run = run_program(kind.before + file.path() + kind.behind);
        EXPECT_EQ(run.exit_code, 2) << kind.shipped << " " << place;
        EXPECT_THAT(run.err, ::testing::StartsWith("ridgeline: " + file.path())) << kind.shipped << " " << place;
        EXPECT_EQ(as_utf8(run.err + run.out), run.err + run.out) << kind.shipped << " " << place;
      }
  }
}

constexpr const char* kHistory =
    "action,addr,size,stream\nsegment_alloc,7f00,2097152,0\nalloc,7f00,512,0\nfree_requested,7f00,512,0\n"
    "free_completed,7f00,512,0\n";
constexpr const char* kCases =
    R"({"op":"mm","dtype":"bf16","params":{"m":512,"n":512,"k":512,"layout":"nt"}}
{"op":"softmax","dtype":"fp32","params":{"rows":512,"cols":512}}
)";
constexpr const char* kOpTrace =
    R"({"ridgeline":"op-trace","version":1,"producer":"by hand","title":"one operation","precision":"fp32","samples":1,"tokens":0,"parameters":0,"model_flops":0,"notes":[]}
{"record":"storage","id":0,"bytes":4096,"category":"inputs"}
{"record":"storage","id":1,"bytes":4096,"category":"activations"}
{"record":"step"}
{"record":"aten","name":"aten::relu","phase":"forward","in":[{"type":"fp32","sizes":[32,32],"storage":0}],"out":[{"type":"fp32","sizes":[32,32],"storage":1}]}
{"record":"end"}
)";

TEST(FilesFromElsewhere, WithAByteOrderMarkOrOtherLineEndsAreReadAsTheyAre) {
  const std::pair<const char*, std::string> cases[] = {
      {"predict --no-advice", contents_of("scenarios/bert-large-fp32.yaml")},
      {"hardware", contents_of("hw/nvidia-t4.yaml")},
      {"models", contents_of("models/gpt2.yaml")},
      {"memory", kHistory},
      {"replay --hardware nvidia-t4", kOpTrace},
      {"kernels --hardware nvidia-t4", kCases}};
  for (const auto& [command, plain] : cases) {
    std::string other_ends;
    for (const char c : plain) other_ends += c == '\n' ? std::string("\r\n") : std::string(1, c);
    std::string printed;
    for (const std::string& text : {plain, "\xef\xbb\xbf" + plain, other_ends}) {
      const TemporaryFile file("from-elsewhere.yaml", text);
      const ProgramRun run = run_program(std::string(command) + " " + file.path());
      EXPECT_EQ(run.exit_code, 0) << command << "\n" << run.err;
      if (printed.empty()) printed = run.out;
      EXPECT_EQ(run.out, printed) << command;
    }
  }
}

TEST(Kernels, AreReadFromACompressedFileToo) {
  const ProgramRun run =
      run_program("kernels --hardware nvidia-h200-sxm-141gb measurements/h200/kernels_conv.jsonl.gz");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"predicted\""));
}

}  // namespace
}  // namespace ridgeline
