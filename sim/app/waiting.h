// A line on a terminal for whoever waits longer than a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ridgeline::app {

/// While it lives, standard error says what is done and for how long: from the first second on, on a terminal alone.
/// The line is gone afterwards.
class Waiting {
 public:
  explicit Waiting(std::string doing);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void tell();

  std::string doing_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread teller_;
};

}  // namespace ridgeline::app
