#include "sim/config/asked.h"

#include <algorithm>

namespace ridgeline::config {
namespace {

thread_local AskedOf* listening = nullptr;

}  // namespace

AskedOf::AskedOf() : outer_(listening) { listening = this; }
AskedOf::~AskedOf() { listening = outer_; }

bool AskedOf::listens() { return listening != nullptr; }

void AskedOf::note(const std::string& path, const Asked& asked) {
  if (listening == nullptr) return;
  std::vector<Asked>& notes = listening->notes_[path];
  if (std::none_of(notes.begin(), notes.end(), [&](const Asked& known) { return known.kind == asked.kind; }))
    notes.push_back(asked);
}

}  // namespace ridgeline::config
