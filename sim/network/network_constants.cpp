#include "sim/network/network_constants.h"

#include "sim/network/tables/network.inc"

namespace ridgeline {

const NetworkConstants& network_constants(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta:
    case Architecture::turing: return network_table::volta;
    case Architecture::ampere:
    case Architecture::ada: return network_table::ampere;
    case Architecture::blackwell: return network_table::blackwell;
    case Architecture::hopper: break;
  }
  return network_table::hopper;
}

const NetworkConstants& network_constants(Architecture architecture, CollectiveLimiter links) {
  if (links == CollectiveLimiter::links) return network_constants(architecture);
  return links == CollectiveLimiter::host ? network_table::host : network_table::pcie;
}

}  // namespace ridgeline
