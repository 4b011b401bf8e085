// Ctrl+C ends every command at once and leaves nothing half-written; a sweep or plan keeps what is done first. Tested
// by tests/app/stops.py.
#pragma once

#include <atomic>
#include <exception>
#include <string>

#include "sim/units/user_error.h"

namespace ridgeline::app {

/// From now on an interrupt, a termination and the end of the terminal end the process at once: unfinished files are
/// removed, and one line says so. What is ignored (nohup, a job in the background) stays so.
void end_on_signals();

/// From now on the first interrupt or termination sets the flag that is given back, which is clear; the
/// second one ends the process.
const std::atomic<bool>& stop_on_signals();

/// What a command throws whose flag is set. Shells expect 128 + the signal's number: 130 after Ctrl+C.
struct Stopped : UserError {
  explicit Stopped(const std::string& message);
  int exit_code;
};

/// Of a command that `error` ended: 1 for what could not be written, 2 for mistakes, that of Stopped.
int exit_code_of(const std::exception& error);

}  // namespace ridgeline::app
