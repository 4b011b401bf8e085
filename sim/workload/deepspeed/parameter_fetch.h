// ZeRO stage 3: who gathers which parameters when, and gives them back.
//
// Follows deepspeed/runtime/zero/partitioned_param_coordinator.py, release 0.19. A leaf is a module with parameters of
// its own, which are gathered together just before it runs, forward or backward. The first forward and backward pass is
// recorded; from the second on whole parameters are gathered ahead in the recorded order, up to prefetch_bucket_size of
// them at each leaf, and one that is used again within max_reuse_distance is not given back. What is gathered at once
// is one all-gather into a buffer, which lives until the last of its parameters is used, and a copy for each parameter;
// a parameter alone is gathered in place. Hooks of modules are taken to run where the first operation reads a
// parameter.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/zero_optimization.h"

namespace ridgeline::deepspeed {

/// One for each, in order.
std::vector<eager::Parameter*> pointers_to(eager::Parameters& parameters);

class ParameterFetch final : public eager::StorageWatcher {
 public:
  /// `parameters`: frozen ones among them, in the order of Module.parameters(). `shards`: this rank's parts of all, one
  /// behind the other.
  ParameterFetch(eager::Eager& eager, std::vector<eager::Parameter*> parameters, const ZeroOptimization& zero,
                 parallel::ProcessGroup& group, const eager::Tensor& shards);
  ParameterFetch(eager::Eager& eager, eager::Parameters& parameters, const ZeroOptimization& zero,
                 parallel::ProcessGroup& group, const eager::Tensor& shards)
      : ParameterFetch(eager, pointers_to(parameters), zero, group, shards) {}
  ~ParameterFetch() override { eager_.recorder.watcher = nullptr; }

  void begin_pass();  ///< forward and backward
  void end_visit();
  /// Operations read parameters from here on, or no longer.
  void watch(bool on) { eager_.recorder.watcher = on ? this : nullptr; }
  void before_use(StorageId storage) override;
  /// The leaf of a parameter runs.
  void visit_of(std::size_t parameter);
  void release_all();
  /// Those that stay whole are gathered after an update, each by itself; the host waits.
  void gather_persistent();
  [[nodiscard]] std::int64_t shard_elements(std::size_t parameter) const { return shard_[parameter]; }

 private:
  enum class Status : std::uint8_t { absent, in_flight, whole };
  struct Fetch {
    std::vector<std::size_t> parameters;
    eager::Tensor buffer;  ///< none: one parameter, in place
    parallel::Work work;
    std::size_t left = 0;  ///< parameters that were not used yet
    bool done = false;
  };
  struct Use {
    std::size_t parameter = 0, visit = 0;
  };
  struct State {
    Status status = Status::absent;
    std::size_t fetch = 0;
    bool registered = false;  ///< gathered, and not used since
    bool persistent = false;
    std::int64_t last_fetched_for = -1;  ///< visit
  };
  void find_leaves();
  void visit(std::size_t leaf);
  void gather(std::vector<std::size_t> parameters);
  void wait_for(std::size_t parameter);
  void prefetch(const std::vector<std::size_t>& used);
  void release(std::size_t parameter);
  [[nodiscard]] std::vector<std::size_t> released_after(std::size_t leaf);
  [[nodiscard]] std::int64_t elements(std::size_t parameter) const { return parameters_[parameter]->value.elements(); }
  [[nodiscard]] StorageId storage(std::size_t parameter) const { return parameters_[parameter]->value.storage.id(); }

  static constexpr std::size_t kNone = ~std::size_t{0};
  eager::Eager& eager_;
  std::vector<eager::Parameter*> parameters_;
  const ZeroOptimization& zero_;
  parallel::ProcessGroup& group_;
  const eager::Tensor& shards_;
  std::uint8_t gathers_;  ///< stream of copies before and after gathers
  std::vector<std::vector<std::size_t>> leaves_;
  std::vector<std::size_t> leaf_of_;       ///< by parameter
  std::vector<std::size_t> parameter_of_;  ///< by storage; kNone: none
  std::vector<std::int64_t> shard_;        ///< elements, by parameter
  std::vector<State> states_;
  std::deque<Fetch> fetches_;
  std::deque<std::uint32_t> waited_;  ///< events behind the last gathers that were waited for
  std::vector<std::size_t> order_;    ///< leaves of one forward and backward pass
  std::vector<Use> uses_;
  std::vector<std::optional<std::vector<std::size_t>>> released_;  ///< after each visit, once known
  std::size_t next_use_ = 0, visits_ = 0, current_ = kNone;
  std::int64_t whole_elements_ = 0;
  int passes_ = 0;
};

}  // namespace ridgeline::deepspeed
