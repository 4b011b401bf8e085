#include "sim/app/stop_signal.h"

#include <unistd.h>

#include <csignal>

#include "sim/output/output_error.h"
#include "sim/output/write_file.h"
#include "sim/units/budget.h"

namespace ridgeline::app {
namespace {

std::atomic<bool> stop_flag{false};
std::atomic<int> caught{0};

extern "C" void end_at_once(int signal) {
  remove_own_unfinished();
  static constexpr char kSaid[] = "ridgeline: stopped\n";
  (void)!::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  ::_exit(128 + signal);
}

extern "C" void catch_stop_signal(int signal) {
  if (caught.exchange(signal) != 0) end_at_once(signal);
  stop_flag = true;
}

}  // namespace

void end_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, end_at_once) == SIG_IGN) std::signal(signal, SIG_IGN);
}

const std::atomic<bool>& stop_on_signals() {
  stop_flag = false;
  caught = 0;
  std::signal(SIGINT, catch_stop_signal);
  std::signal(SIGTERM, catch_stop_signal);
  return stop_flag;
}

Stopped::Stopped(const std::string& message) : UserError(message), exit_code(128 + caught) {}

int exit_code_of(const std::exception& error) {
  if (const auto* stopped = dynamic_cast<const Stopped*>(&error)) return stopped->exit_code;
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return 128 + caught;
  return dynamic_cast<const OutputError*>(&error) != nullptr ? 1 : 2;
}

}  // namespace ridgeline::app
