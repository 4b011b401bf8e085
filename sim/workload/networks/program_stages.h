// The lines of a network that each stage of a pipeline runs.
//
// A network is cut at its blocks: loops "for layer in layers: x = layer(x, …)" over lists of blocks in its own body.
// Lines before the first block belong to the first stage and lines behind blocks to the stage of the last of them, but
// lines that read no input are run by every stage from there on. Lines that read a target are the loss. Stages read all
// inputs for themselves and hand variables on that come of them and that later lines read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/workload/families/stage_part.h"
#include "sim/workload/networks/network_program.h"

namespace ridgeline::networks {

struct StageLine {
  const Statement* statement = nullptr;
  std::int64_t before = 0;    ///< blocks before it
  std::int64_t blocks = 0;    ///< of a loop over blocks
  bool reads_input = false;   ///< or what comes of it
  bool reads_target = false;  ///< likewise: a line of the loss
};

class StageLines {
 public:
  /// `lengths`: of each list of blocks, by its place among the network's modules; 0: no such list.
  StageLines(const NetworkProgram& program, const std::vector<std::int64_t>& lengths);

  /// Why the network cannot be cut; empty where it can.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  [[nodiscard]] bool runs(const StageLine& line, const families::StagePart& part) const;
  /// Places of the modules that a part of the network calls.
  [[nodiscard]] std::set<int> modules_of(const families::StagePart& part) const;
  [[nodiscard]] const std::vector<StageLine>& lines() const { return lines_; }
  /// Variables that the stage of block `number` receives.
  [[nodiscard]] std::vector<int> carried_before(std::int64_t number) const;
  [[nodiscard]] int scores() const { return scores_; }  ///< variable that the loss reads

 private:
  void add(const Statement& statement, const std::vector<std::int64_t>& lengths);
  void find_scores();

  const NetworkProgram& program_;
  std::vector<StageLine> lines_;
  std::set<int> of_input_, of_target_;  ///< variables
  std::int64_t total_ = 0;
  int scores_ = -1;
  std::string obstacle_;
};

}  // namespace ridgeline::networks
