// The operations of a trace in the order of their first calls, with their hashes: what lowering a trace on one chip
// after the other asks each time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline {

struct CalledOp {
  std::uint32_t op = 0;  ///< entry of OpTrace::ops
  std::size_t hash = 0;  ///< hash_of() it
};

/// Those that no call names are left out.
std::vector<CalledOp> called_ops(const OpTrace& trace);

}  // namespace ridgeline
