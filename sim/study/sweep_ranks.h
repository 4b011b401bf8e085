// A sweep spread over the processes that mpirun started: rank 0 hands out stretches of points, keeps what comes back,
// and predicts points itself meanwhile. The same numbers to the bit as one process gives.
#pragma once

#include "sim/study/run_sweep.h"

namespace ridgeline {

/// What this process is to mpirun.
class Ranks {
 public:
  /// Joins the others, if mpirun (or srun) started this process; throws UserError where the program was built without
  /// Boost.MPI and there are others.
  Ranks(int& argc, char**& argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int count() const { return count_; }
  /// True on every rank if it is on rank 0.
  [[nodiscard]] bool agreed(bool of_rank_0) const;
  /// Ends this process at once if it is one of several: saying goodbye to ranks that may be dead would wait forever.
  void leave(int exit_code);
  /// As run_sweep, on all ranks; the result and the calls of on_points are rank 0's alone. `indices` matter on rank 0.
  /// Throws UserError on rank 0 where a rank reads another sweep.
  std::vector<SweepPoint> run(const Sweep& sweep, std::span<const std::uint64_t> indices,
                              const SweepRunOptions& options);

 private:
  struct Environment;
  Environment* environment_ = nullptr;
  int rank_ = 0, count_ = 1;
};

}  // namespace ridgeline
