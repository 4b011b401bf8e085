// The library for several processes, in one process: it is rank 0 of one, and a sweep through it is that of one
// process. A program of its own: a process that has joined MPI cannot start mpirun any more.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "sim/study/sweep/sweep_ranks.h"
#include "tests/support/sweep_fixture.h"

namespace ridgeline {
namespace {

/// Joined once in a process, as MPI asks for; null where Boost.MPI was not there.
Ranks* alone_under_mpi() {
  static const std::unique_ptr<Ranks> ranks = [] {
    const std::filesystem::path library = std::filesystem::path(RIDGELINE_BINARY).parent_path() / "libridgeline_mpi.so";
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    using Join = Ranks* (*)(int&, char**&);
    const auto join = handle == nullptr ? nullptr : reinterpret_cast<Join>(::dlsym(handle, "ridgeline_join_mpi"));
    int argc = 0;
    char** argv = nullptr;
    return std::unique_ptr<Ranks>(join == nullptr ? nullptr : join(argc, argv));
  }();
  return ranks.get();
}

class MpiAlone : public SweepFixture {
 protected:
  void SetUp() override {
    SweepFixture::SetUp();
    if (alone_under_mpi() == nullptr) GTEST_SKIP() << "built without Boost.MPI";
  }
};

TEST_F(MpiAlone, IsRank0OfOne) {
  Ranks& ranks = *alone_under_mpi();
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.count(), 1);
  EXPECT_TRUE(ranks.agreed(true));
  EXPECT_FALSE(ranks.agreed(false));
}

// Stretches of at most 96 points, or a quarter of them and one: each is told when it is done, the result is whole.
TEST_F(MpiAlone, ASweepIsThatOfOneProcess) {
  for (const int count : {2, 10, 500}) {
    const Sweep s = sweep("axes: {training.micro_batch: {range: [1, " + std::to_string(count) + "], step: 1}}\n");
    std::vector<std::uint64_t> told;
    std::vector<std::size_t> stretches;
    const std::vector<SweepPoint> found =
        alone_under_mpi()->run(s, s.points(), {2, nullptr, [&](std::span<const SweepPoint> done) {
                                                 stretches.push_back(done.size());
                                                 for (const SweepPoint& point : done) told.push_back(point.index);
                                               }});
    EXPECT_EQ(found, run(s));
    EXPECT_EQ(told, s.points());
    EXPECT_EQ(stretches, count == 2    ? (std::vector<std::size_t>{1, 1})
                         : count == 10 ? (std::vector<std::size_t>{3, 3, 3, 1})
                                       : (std::vector<std::size_t>{96, 96, 96, 96, 96, 20}));
  }
}

TEST_F(MpiAlone, SomePointsAreThose) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 20], step: 1}}\n");
  const std::vector<std::uint64_t> some{3, 4, 11, 17};
  EXPECT_EQ(alone_under_mpi()->run(s, some, {}), run_sweep(s, some, {}));
  EXPECT_TRUE(alone_under_mpi()->run(s, {}, {}).empty());
}

TEST_F(MpiAlone, ItStopsBetweenStretches) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 40], step: 1}}\n");
  std::atomic<bool> stop = false;
  const std::vector<SweepPoint> found =
      alone_under_mpi()->run(s, s.points(), {2, &stop, [&](std::span<const SweepPoint>) { stop = true; }});
  EXPECT_EQ(found.size(), 11u) << "a quarter of forty and one";
  stop = true;
  EXPECT_TRUE(alone_under_mpi()->run(s, s.points(), {2, &stop, {}}).empty());
}

}  // namespace
}  // namespace ridgeline
