#include "sim/output/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "sim/output/output_error.h"
#include "sim/units/utf8.h"

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
  const std::string characters = as_utf8(text);
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const char c = characters[i];
    const auto byte = static_cast<unsigned char>(c);
    // The controls of ISO 6429 beyond ASCII, U+0080 to U+009F, are 0xc2 and a byte below 0xa0: U+009B is ESC [.
    const bool beyond_ascii = byte == 0xc2 && static_cast<unsigned char>(characters[i + 1]) < 0xa0;
    if (beyond_ascii) {
      shown += fmt::format("<U+{:04X}>", static_cast<unsigned char>(characters[++i]));
    } else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
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
