// What the program does with its options before and beside its answers: versions, mistakes that come first, progress on
// a terminal, the token of a server, documents written anew.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/version.h>

#include <boost/version.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path) << text;
  return path;
}
std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ProgramOptions, TheVersionNamesWhatItWasBuiltWith) {
  const ProgramRun run = run_program("--version");
  EXPECT_EQ(run.exit_code, 0);
  std::string boost = BOOST_LIB_VERSION;  // "1_74"
  std::replace(boost.begin(), boost.end(), '_', '.');
  EXPECT_THAT(run.out, MatchesRegex("ridgeline [0-9]+\\.[0-9]+\\.[0-9]+\nrevision .*\nBoost .*\n"));
  EXPECT_THAT(run.out, HasSubstr("\nBoost " + boost + ", CLI11 "));
  EXPECT_THAT(run.out, HasSubstr(fmt::format(", fmt {}.{}.{}, ", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                                             FMT_VERSION % 100)));
  EXPECT_THAT(run.out, HasSubstr(fmt::format(", nlohmann-json {}.{}.{}, ", NLOHMANN_JSON_VERSION_MAJOR,
                                             NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)));
  EXPECT_THAT(run.out, HasSubstr(fmt::format(", oneTBB {}.{}, ", TBB_VERSION_MAJOR, TBB_VERSION_MINOR)));
}

TEST(ProgramOptions, HelpAndVersionAreSpelledAsPeopleDo) {
  const std::string version = run_program("--version").out, help = run_program("--help").out;
  for (const char* spelled : {"version", "-v", "-V"}) EXPECT_EQ(run_program(spelled).out, version) << spelled;
  EXPECT_EQ(run_program("help").out, help);
  for (const char* command : {"predict", "hardware", "exercise"})
    EXPECT_EQ(run_program(std::string("help ") + command).out, run_program(std::string(command) + " --help").out);
  EXPECT_EQ(run_program("help nothing").exit_code, 2);
}

// A recording takes long: what is wrong with the question is told before it begins.
TEST(ProgramOptions, AScriptIsRecordedForAGpuThatThereIs) {
  const std::string script = file_with("script.py", "raise SystemExit('it ran')\n");
  const auto told = [&](const std::string& more) {
    const ProgramRun run = run_program("predict --record " + script + " " + more);
    EXPECT_NE(run.exit_code, 0);
    return run.err;
  };
  EXPECT_THAT(told(""), HasSubstr("which GPU? --hardware h100 (ridgeline hardware lists them)"));
  EXPECT_THAT(told("--hardware no-such-gpu"), HasSubstr("unknown name 'no-such-gpu'"));
  EXPECT_THAT(told("--hardware no-such-gpu --cluster dgx-a100"), HasSubstr("unknown name 'no-such-gpu'"));
  for (const char* good : {"--hardware nvidia-t4", "--set hardware=nvidia-t4", "--cluster dgx-a100", "--on-every-gpu"})
    EXPECT_THAT(told(good), Not(AllOf(HasSubstr("hardware"), HasSubstr("which GPU")))) << good;
}

constexpr const char* kSweep =
    "scenario: {hardware: nvidia-t4, model: {family: gpt2, layers: 2, heads: 4, hidden: 128, vocabulary: 1000, "
    "max_positions: 64}, training: {micro_batch: 2, sequence_length: 64}}\n";

// A mistake of an axis is told as it is, before any point runs.
TEST(ProgramOptions, AxesAreCheckedBeforePointsRun) {
  const std::string file = file_with("wrong.yaml", std::string(kSweep) + "axes: {training.micro_batch: [0, -1]}\n");
  const ProgramRun run = run_program("sweep " + file);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("ridgeline: " + file));
  EXPECT_THAT(run.err, HasSubstr("micro_batch"));
  EXPECT_THAT(run.err, Not(HasSubstr("no point can run")));
}

/// What a program writes to its standard error where that is a terminal.
std::string on_terminal(const std::string& arguments) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(ours, 0);
  ::grantpt(ours);
  ::unlockpt(ours);
  const std::string name = ::ptsname(ours);
  const int theirs = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // so that what is written waits to be read
  auto text = std::async(std::launch::async, [&] {
    std::string out;
    char buffer[4096];
    while (out.find('\x04') == std::string::npos) {
      const ssize_t n = ::read(ours, buffer, sizeof buffer);
      if (n <= 0) break;
      out.append(buffer, static_cast<std::size_t>(n));
    }
    return out;
  });
  const std::string command =
      "cd " RIDGELINE_SOURCE_DIR " && " RIDGELINE_BINARY " " + arguments + " >/dev/null 2>" + name;
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(::write(theirs, "\x04", 1), 1);
  std::string out = text.get();
  ::close(theirs);
  ::close(ours);
  return out;
}

// Where a person watches, a line says how far it is, at the end too, and is wiped out then; in a pipe nothing does.
TEST(ProgramOptions, ProgressIsShownOnATerminal) {
  const std::string file = file_with("small.yaml", std::string(kSweep) + "axes: {training.micro_batch: [1, 2, 3]}\n");
  const std::string shown = on_terminal("sweep " + file);
  EXPECT_THAT(shown, HasSubstr("\r3 of 3 points, about 0 s left   "));
  EXPECT_THAT(shown, HasSubstr("left   \r" + std::string(60, ' ') + "\r"));
  EXPECT_EQ(run_program("sweep " + file).err, "");
}

/// What a server that was started so answers to GET `path`, twice.
std::string served(const std::string& options, const std::vector<std::string>& headers) {
  std::string script = RIDGELINE_BINARY " serve --port 0 " + options + " >" + temporary_path("served") + " & pid=$!\n" +
                       "for i in $(seq 100); do grep -q http " + temporary_path("served") +
                       " && break; sleep 0.1; done\n" + "port=$(sed 's|.*127.0.0.1:\\([0-9]*\\).*|\\1|' " +
                       temporary_path("served") + ")\n";
  for (const std::string& header : headers)
    script +=
        "exec 3<>/dev/tcp/127.0.0.1/$port\nprintf 'GET /api/hardware HTTP/1.1\\r\\nHost: 127.0.0.1:'$port'\\r\\n" +
        header + "Connection: close\\r\\n\\r\\n' >&3\nhead -1 <&3\nexec 3>&-\n";
  script += "kill $pid\nwait $pid\ncat " + temporary_path("served") + "\n";
  std::string out;
  FILE* pipe = ::popen(("bash " + file_with("serve.sh", script) + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  ::pclose(pipe);
  return out;
}

TEST(ProgramOptions, AServerAsksForTheTokenThatItWasGiven) {
  const std::string guarded =
      served("--token abc", {"", "Authorization: Bearer abc\\r\\n", "Authorization: Bearer x\\r\\n"});
  std::istringstream lines(guarded);
  std::vector<std::string> status;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("HTTP/1.1")) status.push_back(line.substr(9, 3));
  EXPECT_THAT(status, ::testing::ElementsAre("403", "200", "403"));
  EXPECT_THAT(guarded, HasSubstr("/#token=abc\n"));
  const std::string open = served("", {""});
  EXPECT_THAT(open, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(open, Not(HasSubstr("token")));
}

// Documents are written from the measurements of a folder; the README keeps what stands around its rows.
TEST(ProgramOptions, DocumentsAreWrittenAnew) {
  const std::filesystem::path root = temporary_path("documents"), source = RIDGELINE_SOURCE_DIR;
  std::filesystem::create_directories(root / "docs");
  std::filesystem::create_directories(root / "made");
  for (const char* name : {"hw", "models", "scenarios"})
    std::filesystem::create_directory_symlink(source / name, root / name);
  std::ofstream(root / "README.md") << "before\n<!-- accuracy: begin -->\nold\n<!-- accuracy: end -->\nbehind\n";
  std::ofstream(root / "made/cases.jsonl")
      << R"({"op": "mm", "dtype": "fp16", "params": {"m": 256, "n": 64, "k": 32, "layout": "nt"}, "us": 3.5})"
      << "\n";
  std::ofstream(root / "made/index.yaml")
      << "machines:\n  one: {hardware: nvidia-h200-sxm-141gb, software: pytorch-2.11, stack: s, host: default, clocks: "
         "c}\nfiles:\n  - {path: cases.jsonl, kind: kernels, machine: one, split: held-out}\n";
  ::setenv("RIDGELINE_DATA", root.c_str(), 1);
  const ProgramRun run = run_program("validate --write-docs --kernels-only --measurements " + (root / "made").string());
  ::unsetenv("RIDGELINE_DATA");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "docs/accuracy.md and README.md: tables from 1 kernels and 0 steps\n");
  const std::string readme = text_of_file(root / "README.md");
  EXPECT_THAT(readme, StartsWith("before\n<!-- accuracy: begin -->\n"));
  EXPECT_THAT(readme, Not(HasSubstr("old")));
  EXPECT_THAT(readme, HasSubstr("| what | cases | median error | inside the range |\n"));
  EXPECT_THAT(readme, ::testing::EndsWith("<!-- accuracy: end -->\nbehind\n"));
  EXPECT_THAT(text_of_file(root / "docs/accuracy.md"), HasSubstr("## In short\n"));
  EXPECT_FALSE(text_of_file(root / "docs/accuracy.md").empty());
  EXPECT_EQ(text_of_file(root / "docs/microkernels.md"), text_of_file(source / "docs/microkernels.md"));
}

}  // namespace
}  // namespace ridgeline
