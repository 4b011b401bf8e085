// Collectives, a line of JSON each, answered with their predictions; a mistake is told on its own line.
#pragma once

#include <string>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/network/cluster.h"

namespace ridgeline {

class CollectiveLines {
 public:
  /// `table`: a row of a table for people in the place of JSON.
  /// `host_call`: the host's part of a call of torch.distributed.
  CollectiveLines(Cluster cluster, Gpu gpu, Seconds host_call, bool table);

  /// What stands above the rows: nothing, or the heads of the table's columns with the end of their line.
  [[nodiscard]] std::string heading() const;

  struct Answer {
    std::string text;     ///< without the end of the line
    std::string mistake;  ///< in words; empty where there is none
  };
  [[nodiscard]] Answer answer(std::string_view line) const;

 private:
  Cluster cluster_;
  Gpu gpu_;
  Seconds host_call_;
  bool table_;
};

/// One line a cluster: GPUs, what joins them, NICs.
std::string cluster_list();

}  // namespace ridgeline
