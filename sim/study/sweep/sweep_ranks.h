// A sweep spread over the processes that mpirun started: rank 0 hands out stretches of points, keeps what comes back,
// and predicts points itself meanwhile. The same numbers to the bit as one process gives.
#pragma once

#include <memory>

#include "sim/study/sweep/run_sweep.h"

namespace ridgeline {

/// What this process is to mpirun; as it is here, the only one.
class Ranks {
 public:
  Ranks() = default;
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] virtual int rank() const { return 0; }
  [[nodiscard]] virtual int count() const { return 1; }
  /// True on every rank if it is on rank 0.
  [[nodiscard]] virtual bool agreed(bool of_rank_0) const { return of_rank_0; }
  /// Ends this process at once if it is one of several: saying goodbye to ranks that may be dead would wait forever.
  virtual void leave(int /*exit_code*/) {}
  /// As run_sweep, on all ranks; the result and the calls of on_points are rank 0's alone. `indices` matter on rank 0.
  /// Throws UserError on rank 0 where a rank reads another sweep.
  virtual std::vector<SweepPoint> run(const Sweep& sweep, std::span<const std::uint64_t> indices,
                                      const SweepRunOptions& options) {
    return run_sweep(sweep, indices, options);
  }
};

/// Joins the others, if mpirun (or srun) started this process, through sim/mpi, which is loaded then. Throws UserError
/// where there are others and that library is not there: it is built where Boost.MPI is installed.
std::unique_ptr<Ranks> join_ranks(int& argc, char**& argv);

}  // namespace ridgeline
