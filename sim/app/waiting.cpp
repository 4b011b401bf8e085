#include "sim/app/waiting.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "sim/output/standard_error.h"
#include "sim/units/budget.h"

namespace ridgeline::app {

Waiting::Waiting(std::string doing) : doing_(std::move(doing)) {
  if (::isatty(STDERR_FILENO) == 1) teller_ = std::thread(with_same_budget([this] { tell(); }));
}

Waiting::~Waiting() {
  if (!teller_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  teller_.join();
}

void Waiting::tell() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool told = false;
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    print_message_as_it_is(
        fmt::format("\r{}: {} s   ", doing_, std::chrono::duration_cast<std::chrono::seconds>(waited).count()));
    told = true;
  }
  if (told) print_message_as_it_is(fmt::format("\r{:60}\r", ""));
}

}  // namespace ridgeline::app
