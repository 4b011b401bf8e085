#include "sim/study/exercise/pasted_command.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "sim/config/data_folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string in_shell(const std::string& path) {
  const bool plain = path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") ==
                     std::string::npos;
  if (plain) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// What `ridgeline` has to be called here.
std::string program() {
  constexpr const char* kName = "ridgeline";
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (self.filename() != kName) return kName;  // a library in another program
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path found = fs::path(folder) / kName;
    if (fs::exists(found, ignored)) return fs::equivalent(found, self, ignored) ? kName : in_shell(self.string());
  }
  return in_shell(self.string());
}

/// The same without an absolute path.
std::string shown_program() {
  const std::string called = program();
  std::error_code failed;
  if (!called.starts_with('/') && !called.starts_with('\'')) return called;
  const fs::path below = fs::read_symlink("/proc/self/exe", failed).lexically_relative(fs::current_path(failed));
  constexpr std::ptrdiff_t kNear = 2;  // a build folder and the program in it
  if (failed || below.empty() || below.string().starts_with("..") || std::distance(below.begin(), below.end()) > kNear)
    return "ridgeline";
  return in_shell(below.has_parent_path() ? below.string() : "./" + below.string());
}

}  // namespace

std::string shown_command(const std::string& command) {
  constexpr std::string_view kName = "ridgeline";
  const bool starts = command.starts_with(kName) && (command.size() == kName.size() || command[kName.size()] == ' ');
  return starts ? shown_program() + command.substr(kName.size()) : command;
}

std::string pasted_anywhere(const std::string& command) {
  static const std::string called = program();
  std::istringstream words(command);
  std::string out;
  // Quoted words never begin so, and words are parted by one blank.
  for (std::string word; std::getline(words, word, ' ');) {
    std::error_code ignored;
    if (word == "ridgeline") word = called;
    else if (word.starts_with("scenarios/") && !fs::exists(word, ignored))
      word = in_shell((config::data_folder("scenarios").parent_path() / word).string());
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

}  // namespace ridgeline
