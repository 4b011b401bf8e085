#include "sim/app/command_line.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ridgeline::app {
namespace {

std::string& remembered() {
  static std::string line;
  return line;
}

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "_./=,:@%+-";
  const auto plain = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != kPlain.npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

void remember_command_line(int argc, const char* const* argv) {
  std::string line = "ridgeline";
  for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
  remembered() = std::move(line);
}

const std::string& command_line() { return remembered(); }

}  // namespace ridgeline::app
