#include "sim/app/script_recording.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "sim/config/data_folder.h"
#include "sim/output/output_error.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMistake = 2;
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t running_child = 0, caught_signal = 0;

/// The terminal sends an interrupt to the script as well.
void pass_on(int signal) {
  caught_signal = signal;
  if (signal != SIGINT && running_child > 0) ::kill(static_cast<pid_t>(running_child), signal);
}

/// Signals that would end the program end the script first.
class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    struct sigaction action {};
    action.sa_handler = pass_on;
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      ::sigaction(kEnding[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kEnding[i], &action, nullptr);  // as nohup asks
    }
  }
  ~SignalsPassedOn() {
    running_child = 0;
    for (std::size_t i = 0; i < kEnding.size(); ++i) ::sigaction(kEnding[i], &before_[i], nullptr);
  }
  SignalsPassedOn(const SignalsPassedOn&) = delete;
  SignalsPassedOn& operator=(const SignalsPassedOn&) = delete;

 private:
  std::array<struct sigaction, kEnding.size()> before_{};
};

std::string python() {
  const char* given = std::getenv("RIDGELINE_PYTHON");
  return given != nullptr && *given != '\0' ? given : "python3";
}

/// Where `import ridgeline` finds the recorder: python/ of the source tree, or of what is installed.
fs::path package_folder() {
  fs::path folder = config::data_folder("python");
  std::error_code ignored;
  if (!fs::exists(folder / "ridgeline" / "record" / "__main__.py", ignored))
    throw UserError(fmt::format("--record: the recorder is not in {}", folder.string()));
  return folder;
}

std::vector<std::string> environment_with(const fs::path& package) {
  constexpr std::string_view kPath = "PYTHONPATH=";
  std::vector<std::string> variables;
  std::string path = std::string(kPath) + package.string();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(kPath)) variables.emplace_back(text);
    else if (text.size() > kPath.size()) path += fmt::format(":{}", text.substr(kPath.size()));
  }
  variables.push_back(path);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// The wait status of a program that was started without a shell.
int run(std::vector<std::string> command, std::vector<std::string> variables) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, command.front().c_str(), &files, nullptr, pointers(command).data(),
                                   pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw UserError(
        fmt::format("{}: cannot be started: {}; --record runs the script with the Python that has PyTorch: "
                    "put it on the PATH as python3, or name it in RIDGELINE_PYTHON",
                    command.front(), std::strerror(error)));
  running_child = child;
  if (const int signal = caught_signal; signal != 0) pass_on(signal);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

void mind_end(int status, const std::string& script) {
  if (WIFSIGNALED(status))
    throw UserError(fmt::format("{}: not recorded: {} was ended by signal {} ({}){}", script, python(),
                                WTERMSIG(status), ::strsignal(WTERMSIG(status)),
                                WTERMSIG(status) == SIGKILL ? "; is there enough memory?" : ""));
  if (const int code = WEXITSTATUS(status); code == kMistake)
    throw UserError(fmt::format("{}: not recorded, for the reason above", script));
  else if (code != 0)
    throw UserError(fmt::format("{}: not recorded: {} ended with exit code {}", script, python(), code));
}

}  // namespace

ScriptRecording::ScriptRecording(const std::string& script, const std::vector<std::string>& arguments) {
  std::error_code failed;
  if (!fs::exists(script, failed)) throw UserError(fmt::format("--record {}: no such file", script));
  if (!fs::is_regular_file(script, failed)) throw UserError(fmt::format("--record {}: not a file", script));
  const fs::path package = package_folder();
  std::string folder = (fs::temp_directory_path() / "ridgeline-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    throw OutputError(fmt::format("{}: cannot be made: {}", folder, std::strerror(errno)));
  folder_ = folder;
  trace_ = folder_ / (fs::path(script).stem().string() + ".jsonl.gz");
  std::vector<std::string> command{python(), "-m",       "ridgeline.record", "--script",
                                   script,   "--output", trace_.string(),    "--"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    caught_signal = 0;
    int status = 0;
    {
      const SignalsPassedOn passed_on;
      status = run(std::move(command), environment_with(package));
    }
    if (const int signal = caught_signal; signal != 0) {
      fs::remove_all(folder_, failed);
      ::raise(signal);
    }
    mind_end(status, script);
  } catch (...) {
    fs::remove_all(folder_, failed);
    throw;
  }
}

ScriptRecording::~ScriptRecording() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace ridgeline::app
