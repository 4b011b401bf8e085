#include "sim/serve/newest.h"

#include <algorithm>

#include "sim/answer/step_run.h"

namespace ridgeline::serve {

std::stop_source Newest::begin(const std::string& client, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.name == client; });
  if (found == clients_.end()) {
    clients_.push_front({client, sequence, {}});
    if (clients_.size() > kMostClients) clients_.pop_back();
    return clients_.front().running;
  }
  clients_.splice(clients_.begin(), clients_, found);
  Client& known = clients_.front();
  if (sequence < known.sequence) throw Cancelled();
  known.running.request_stop();
  known.sequence = sequence;
  known.running = std::stop_source();
  return known.running;
}

}  // namespace ridgeline::serve
