#include "sim/output/standard_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "sim/output/standard_output.h"

namespace ridgeline {

void print_message_text(std::string_view text) { print_message_as_it_is(without_controls(text)); }

void print_message_as_it_is(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one. What may not be read is opened for writing, and the reverse.
    (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace ridgeline
