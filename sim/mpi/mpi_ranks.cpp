// The processes of a sweep under mpirun. A library of its own, loaded where a launcher started several, so that the
// program itself loads no MPI.
#include <fmt/format.h>

#include <algorithm>
#include <boost/mpi.hpp>
#include <boost/serialization/vector.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "sim/study/sweep/sweep_ranks.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

namespace mpi = boost::mpi;

/// kWork: how many points, then their indices. Never an empty vector, which Boost.MPI would take the first entry of.
enum Tag : int { kWork = 1, kResult = 2, kMistake = 3 };
constexpr std::size_t kStretch = 96;  // points handed out at once, at most: each rank gets some

std::string as_lines(std::span<const SweepPoint> points) {
  std::string text;
  for (const SweepPoint& point : points)
    text += point_json(point).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return text;
}
std::vector<SweepPoint> from_lines(const std::string& text) {
  std::vector<SweepPoint> points;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) points.push_back(point_from_json(nlohmann::json::parse(line)));
  return points;
}

/// Rank 0: who gets which stretch, and what came back.
class Coordinator {
 public:
  Coordinator(mpi::communicator& world, const Sweep& sweep, std::span<const std::uint64_t> indices,
              const SweepRunOptions& options)
      : world_(world), sweep_(sweep), indices_(indices), options_(options), own_options_(options) {
    own_options_.on_points = nullptr;
  }

  std::vector<SweepPoint> run() {
    for (int rank = 1; rank < world_.size(); ++rank) hand_out(rank);
    std::optional<Clock::time_point> last_call;  // when to wait no longer for a rank that may be dead
    while (working_ > 0 || next_ < indices_.size() || own_.valid()) {
      if (stopped() && !own_.valid()) {
        if (!last_call) last_call = Clock::now() + std::chrono::milliseconds(200);
        if (working_ == 0 || Clock::now() > *last_call) break;
      }
      if (!own_.valid() && next_ < indices_.size() && !stopped()) {
        const auto stretch = next_stretch();
        own_ = std::async(std::launch::async, [this, stretch] { return run_sweep(sweep_, stretch, own_options_); });
      }
      if (receive()) continue;
      if (!own_.valid()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else if (own_.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
        keep(own_.get());
      }
    }
    if (!mistake_.empty()) throw UserError(mistake_);
    std::vector<SweepPoint> points;
    for (auto& [index, point] : done_) points.push_back(std::move(point));
    return points;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Incoming {
    Incoming(int from, int its_tag, std::string room) : source(from), tag(its_tag), text(std::move(room)) {}
    int source, tag;
    std::string text;
    mpi::request request;
  };
  [[nodiscard]] bool stopped() const { return (options_.stop && *options_.stop) || !mistake_.empty(); }

  std::span<const std::uint64_t> next_stretch() {
    const std::size_t fair = indices_.size() / (4 * static_cast<std::size_t>(world_.size())) + 1;
    const auto stretch = indices_.subspan(next_, std::min({kStretch, fair, indices_.size() - next_}));
    next_ += stretch.size();
    return stretch;
  }
  /// The next stretch, or none: then the rank is done.
  void hand_out(int rank) {
    const std::span<const std::uint64_t> stretch = stopped() ? std::span<const std::uint64_t>{} : next_stretch();
    std::vector<std::uint64_t> work{stretch.size()};
    work.insert(work.end(), stretch.begin(), stretch.end());
    world_.send(rank, kWork, work);
    if (!stretch.empty()) ++working_;
  }
  /// What has arrived whole; false where there is nothing. Never waits: a rank can die in the middle of what it says.
  bool receive() {
    if (!incoming_) {
      const auto status = world_.iprobe(mpi::any_source, mpi::any_tag);
      if (!status) return false;
      incoming_.emplace(status->source(), status->tag(), std::string(*status->count<char>(), ' '));
      std::string& text = incoming_->text;
      incoming_->request = world_.irecv(incoming_->source, incoming_->tag, text.data(), static_cast<int>(text.size()));
    }
    if (!incoming_->request.test()) return false;
    const Incoming message = std::move(*incoming_);
    incoming_.reset();
    --working_;
    if (message.tag == kMistake) {
      mistake_ = fmt::format("rank {}: {}", message.source, message.text);
    } else {
      keep(from_lines(message.text));
      hand_out(message.source);
    }
    return true;
  }
  void keep(std::vector<SweepPoint> points) {
    if (options_.on_points) options_.on_points(points);
    for (SweepPoint& point : points) done_.emplace(point.index, std::move(point));
  }

  mpi::communicator& world_;
  const Sweep& sweep_;
  std::span<const std::uint64_t> indices_;
  const SweepRunOptions& options_;
  SweepRunOptions own_options_;
  std::size_t next_ = 0;
  int working_ = 0;                   ///< ranks that owe a stretch
  std::optional<Incoming> incoming_;  ///< on its way
  std::future<std::vector<SweepPoint> > own_;
  std::map<std::uint64_t, SweepPoint> done_;
  std::string mistake_;
};

/// Characters in one message, which rank 0 can await without waiting.
void tell_rank_0(mpi::communicator& world, Tag tag, const std::string& text) {
  world.send(0, tag, text.data(), static_cast<int>(text.size()));
}

void work_for_rank_0(mpi::communicator& world, const Sweep& sweep, const SweepRunOptions& options) {
  SweepRunOptions own = options;
  own.on_points = nullptr;
  while (true) {
    std::vector<std::uint64_t> work;
    world.recv(0, kWork, work);
    const std::span<const std::uint64_t> stretch = std::span(work).subspan(1);
    if (stretch.empty()) return;
    try {
      tell_rank_0(world, kResult, as_lines(run_sweep(sweep, stretch, own)));
    } catch (const std::exception& error) {
      tell_rank_0(world, kMistake, error.what());
      return;
    }
  }
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks(int& argc, char**& argv) : environment_(argc, argv, mpi::threading::funneled, false) {}

  [[nodiscard]] int rank() const override { return world_.rank(); }
  [[nodiscard]] int count() const override { return world_.size(); }
  [[nodiscard]] bool agreed(bool of_rank_0) const override {
    mpi::broadcast(world_, of_rank_0, 0);
    return of_rank_0;
  }
  void leave(int exit_code) override {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }
  std::vector<SweepPoint> run(const Sweep& sweep, std::span<const std::uint64_t> indices,
                              const SweepRunOptions& options) override {
    std::uint64_t expected = sweep.fingerprint;
    mpi::broadcast(world_, expected, 0);
    const bool same = mpi::all_reduce(world_, expected == sweep.fingerprint, std::logical_and<bool>());
    if (!same) throw UserError("not every rank reads the same sweep: the file or the program differs between machines");
    if (rank() == 0) return Coordinator(world_, sweep, indices, options).run();
    work_for_rank_0(world_, sweep, options);
    return {};
  }

 private:
  mpi::environment environment_;
  mpi::communicator world_;
};

}  // namespace
}  // namespace ridgeline

/// What join_ranks looks up.
extern "C" __attribute__((visibility("default"))) ridgeline::Ranks* ridgeline_join_mpi(int& argc, char**& argv) {
  // Open MPI looks the machine over by hwloc, which complains where /sys is not mounted; launchers may put that into
  // the answer.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  return new ridgeline::MpiRanks(argc, argv);
}
