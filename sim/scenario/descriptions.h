// Descriptions that many scenarios name: each is read once for each set of changes. Safe to share between threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/trace/read_recording.h"

namespace ridgeline {

template <typename T>
class Remembered {
 public:
  using Pointer = std::shared_ptr<const T>;
  /// The value of `key`, made by `make` the first time (outside of the lock: two threads may both make it; one stays).
  template <typename Make>
  Pointer get(const std::string& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = values_.find(key); found != values_.end()) return found->second;
    }
    Pointer made = std::make_shared<const T>(make());
    const std::lock_guard lock(mutex_);
    return values_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Pointer> values_;
};

struct Descriptions {
  Remembered<Gpu> gpus;
  Remembered<Host> hosts;
  Remembered<Software> software;
  Remembered<ModelDescription> models;
  Remembered<Cluster> clusters;
  Remembered<trace::RecordingFile> recordings;
  /// Key of a description with its changes.
  static std::string key(std::string_view name, const std::vector<config::Override>& changes);
};

/// A scenario and the shared descriptions behind it: equal pointers, equal descriptions.
struct SharedScenario {
  Scenario scenario;
  std::shared_ptr<const Gpu> gpu;
  std::shared_ptr<const Software> software;
};

/// load_scenario for commands that read several of which some name the same.
Scenario load_scenario(const ScenarioSource& source, Descriptions& descriptions);

/// The scenario as it was asked with further changes. A cluster among them stands in the place of the GPU that was
/// named. Throws as load_scenario does.
Scenario load_changed(const AskedScenario& asked, const std::vector<config::Override>& changes,
                      Descriptions& descriptions);

/// As load_scenario of the tree of a scenario file changed by `overrides`.
SharedScenario load_shared_scenario(const config::Node& tree, const std::vector<config::Override>& overrides,
                                    Descriptions& descriptions);

}  // namespace ridgeline
