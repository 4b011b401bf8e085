// Facts that a hardware file of another simulator states of a machine, in SI units.
//
// Files that are read: systems of Calculon, LLMCompass and SimuMax (JSON), GenZ's dictionary of systems (Python),
// clusters of LLMServingSim (JSON), networks and systems of ASTRA-sim (YAML, JSON), GPGPU-Sim's options (Accel-Sim).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::other_simulators {

/// Names of facts, each a number in SI units: B, B/s, Hz, FLOP/s, s, W.
enum class Fact : unsigned char {
  tensor_flops,  ///< dense, 16 bits
  memory,        ///< of a device
  memory_bandwidth,
  sms,
  clock,
  l2,
  registers,      ///< of an SM
  shared,         ///< of an SM
  l1_and_shared,  ///< of an SM
  warps,          ///< of an SM at most
  power,
  link,  ///< of a device to others of its machine, one way
  gpus,  ///< of a machine
  nodes,
  nic,  ///< of a device to other machines, one way
  nic_latency,
};

struct MachineFact {
  double value = 0.0;
  std::string key;  ///< of the file
};

struct MachineFacts {
  std::string tool;            ///< "Calculon"
  std::string title;           ///< as the file calls it, else the file's name
  int compute_capability = 0;  ///< 86: of a file that says it
  std::map<Fact, MachineFact> facts;
  std::vector<std::string> unread;   ///< keys that say something of the machine and are not used
  std::vector<std::string> systems;  ///< of a file with several
  std::vector<std::string> notes;

  [[nodiscard]] bool says(Fact fact) const { return facts.contains(fact); }
  [[nodiscard]] double at(Fact fact) const { return facts.at(fact).value; }
  void set(Fact fact, double value, std::string key) {
    if (value > 0.0) facts.try_emplace(fact, MachineFact{value, std::move(key)});
  }
};

/// True for a kind of recognition's table that machine_facts() reads.
bool is_other_simulators(std::string_view kind);

/// `kind`: of recognition's table; `system`: of a file with several, "" for the first. Throws UserError for a file that
/// says nothing of a machine, and for a system that it has not.
MachineFacts machine_facts(const std::string& file, std::string_view kind, const std::string& system = "");

}  // namespace ridgeline::other_simulators
