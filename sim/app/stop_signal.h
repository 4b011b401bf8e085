// Ctrl+C of a long command: it keeps what is done, says so, and ends as a program does that the signal ended.
#pragma once

#include <atomic>
#include <exception>
#include <string>

#include "sim/units/user_error.h"

namespace ridgeline::app {

/// From now on an interrupt and a termination set the flag that is given back, which is clear.
const std::atomic<bool>& stop_on_signals();

/// What a command throws whose flag is set. Shells expect 128 + the signal's number: 130 after Ctrl+C.
struct Stopped : UserError {
  explicit Stopped(const std::string& message);
  int exit_code;
};

/// Of a command that `error` ended: 1 for what could not be written, 2 for mistakes, that of Stopped.
int exit_code_of(const std::exception& error);

}  // namespace ridgeline::app
