// Training in phases that share a GPU: generation, passes of a reference and of a reward network, an update.
//
// A phase is a scenario of its own, which names what exists. Between its turns its weights and the optimizer's states
// stay on the device, unless it is offloaded: then they are copied in before its turn and out behind it. A phase that
// uses the network of another one has no weights of its own.
// Tested by tests/study/phases_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/config/node.h"

namespace ridgeline {

/// One phase of a file.
struct PhaseDescription {
  std::string name;
  std::int64_t times = 1;                 ///< in a round
  bool offloaded = false;                 ///< its own network and its states wait in the host's pinned memory
  std::optional<std::size_t> network_of;  ///< number of the phase whose network it uses
  Scenario scenario;
};

struct PhasedTraining {
  std::string title;
  std::vector<PhaseDescription> phases;
};

/// Throws ConfigError. Keys beside `title` and `phases` are of every phase's scenario; a phase's own come on top.
PhasedTraining read_phases(const config::Node& tree);

struct PhaseAnswer {
  std::string name;
  std::int64_t times = 1;
  Seconds once, copies;                  ///< of one turn; of weights and states in and out, a round
  std::int64_t own = 0;                  ///< bytes of the device that the phase alone takes at its peak
  std::int64_t weights = 0, states = 0;  ///< of its own network, and of its optimizer: what stays between its turns
  std::int64_t of_others = 0;            ///< those of other phases during this one
  std::int64_t peak = 0;                 ///< with those
  bool fits = true;
};

struct PhasesAnswer {
  std::string title, hardware;
  std::int64_t capacity = 0;
  std::int64_t host = 0;  ///< bytes in the host's memory
  Seconds round;
  std::vector<PhaseAnswer> phases;
};

PhasesAnswer answer_phases(Session& session, const PhasedTraining& training, std::string_view engine);

std::string phases_text(const PhasesAnswer& answer);

}  // namespace ridgeline
