// A slider that moves asks again before it was answered: of the questions of one client only the newest counts.
//
// Tested by tests/serve/newest_test.cpp.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

namespace ridgeline::serve {

class Newest {
 public:
  /// The stop token of question `sequence` of `client`. Stops that client's earlier ones; throws Cancelled
  /// (answer/step_run.h) where a later one was asked already. Remembers the kMostClients that asked last.
  std::stop_source begin(const std::string& client, std::uint64_t sequence);

  static constexpr std::size_t kMostClients = 256;

 private:
  struct Client {
    std::string name;
    std::uint64_t sequence = 0;
    std::stop_source running;
  };
  std::mutex mutex_;
  std::list<Client> clients_;  ///< the one that asked last in front
};

}  // namespace ridgeline::serve
