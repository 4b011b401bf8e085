#include "sim/output/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "sim/output/output_error.h"

namespace ridgeline {
namespace {

[[noreturn]] void fail_standard_output(int error) {
  throw OutputError(fmt::format("standard output: cannot be written{}{}", error != 0 ? ": " : "",
                                error != 0 ? std::strerror(error) : ""));
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      shown += '^';
      shown += static_cast<char>(byte ^ 0x40);
    } else {
      shown += c;
    }
  }
  return shown;
}

void print_text(std::string_view text) { print_as_it_is(without_controls(text)); }

void print_as_it_is(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_standard_output(errno);
}

void finish_output() {
  errno = 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_standard_output(errno);
}

}  // namespace ridgeline
