// Files of points: to the bit, whoever kills the process, and never of two questions.
#include "sim/study/sweep/points_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>

#include "sim/input/sqlite.h"
#include "sim/output/output_error.h"
#include "tests/support/sweep_fixture.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
class PointsFileTest : public SweepFixture {};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string refusal(const std::string& path, const Sweep& sweep) {
  try {
    (void)PointsFile(path, sweep);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_F(PointsFileTest, a_points_file_holds_the_points_to_the_bit_and_takes_more) {
  const Sweep s =
      sweep("axes: {training.micro_batch: {range: [1, 9], step: 1}, training.sequence_length: [128, 4096]}\n");
  std::vector<SweepPoint> all = run(s);
  all[1].metrics = {};
  all[1].metrics[0] = std::numeric_limits<double>::infinity();
  all[1].metrics[1] = 5e-324;
  all[1].metrics[2] = -1.0 / 3.0;
  all[3].error = "a \"quoted\" mistake\nof two lines \xc3\xa9";
  for (std::size_t done = 0; done <= all.size(); done += 5) {
    const std::span<const SweepPoint> first = std::span(all).first(done);
    std::filesystem::remove(path("points"));
    { PointsFile(path("points"), s).append(first); }
    PointsFile again(path("points"), s);
    EXPECT_EQ(again.known(), std::vector<SweepPoint>(first.begin(), first.end()));
    again.append(std::span(all).subspan(done));
    again.flush();
    again.append(std::span(all).first(1));  // twice is once
  }
  EXPECT_EQ(PointsFile(path("points"), s).known(), all);
}

TEST_F(PointsFileTest, a_stretch_that_was_stopped_before_its_first_point_changes_nothing) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 3], step: 1}}\n");
  const std::vector<SweepPoint> all = run(s);
  {
    PointsFile file(path("points"), s);
    file.append({});
    file.append(std::span(all).first(2));
    file.append({});
    file.flush();
    file.append({});
    file.append(std::span(all).subspan(2));
  }
  EXPECT_EQ(PointsFile(path("points"), s).known(), all);
}

TEST_F(PointsFileTest, a_killed_process_loses_at_most_what_it_had_not_flushed) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 40], step: 1}}\n");
  const std::vector<SweepPoint> all = run(s);
  const pid_t child = fork();
  if (child == 0) {
    PointsFile file(path("points"), s);
    file.append(std::span(all).first(17));
    file.flush();
    file.append(std::span(all).subspan(17, 10));  // its transaction never ends
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  PointsFile file(path("points"), s);
  EXPECT_EQ(file.known(), std::vector<SweepPoint>(all.begin(), all.begin() + 17));
  file.append(std::span(all).subspan(17));
  file.flush();
}

TEST_F(PointsFileTest, two_processes_never_write_one_points_file) {
  const Sweep s = sweep("axes: {training.micro_batch: [1, 2]}\n");
  const std::vector<SweepPoint> all = run(s);
  PointsFile held(path("held"), s);
  held.append(std::span(all).first(1));
  EXPECT_THAT(refusal(path("held"), s), HasSubstr("another sweep is writing"));
  const pid_t child = fork();
  if (child == 0) std::_Exit(refusal(path("held"), s).find("another sweep is writing") != std::string::npos ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  held.append(std::span(all).subspan(1));
  held.flush();
}

TEST_F(PointsFileTest, a_points_file_of_something_else_is_refused_and_left_alone) {
  const Sweep s = sweep("axes: {training.micro_batch: [1, 2]}\n");
  { PointsFile(path("points"), s).append(run(s)); }
  const Sweep other = sweep("axes: {training.micro_batch: [1, 3]}\n");
  EXPECT_THAT(refusal(path("points"), other), HasSubstr("another sweep"));
  EXPECT_EQ(PointsFile(path("points"), s).known().size(), 2u);
  for (const char* text : {"x", "Dear reader,\nthis is no such file\n", "{\"ridgeline_sweep\":1}\n{\"point\":0}\n"}) {
    std::ofstream(path("letter"), std::ios::trunc) << text;
    EXPECT_THAT(refusal(path("letter"), s), HasSubstr("not a points file"));
    EXPECT_EQ(bytes_of(path("letter")), text);
  }
  {
    sqlite::Connection foreign(path("foreign"));
    foreign.run("CREATE TABLE diary (day TEXT)");
  }
  const std::string before = bytes_of(path("foreign"));
  EXPECT_THAT(refusal(path("foreign"), s), HasSubstr("not a points file"));
  EXPECT_EQ(bytes_of(path("foreign")), before);
  EXPECT_THROW(PointsFile(path("no/such/folder"), s), UserError);
  std::ofstream(path("empty"));
  EXPECT_TRUE(PointsFile(path("empty"), s).known().empty());
}

TEST_F(PointsFileTest, points_of_two_states_of_a_file_are_never_mixed) {
  const std::filesystem::path shipped = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "hw/nvidia-t4.yaml";
  const std::string hardware = path("mine.yaml");
  std::filesystem::copy_file(shipped, hardware);
  const Sweep s = sweep("axes: {hardware: [nvidia-h200-sxm-141gb, " + hardware + "], training.micro_batch: [1, 2]}\n");
  const std::vector<SweepPoint> all = run(s);
  PointsFile file(path("points"), s);
  file.append(std::span(all).first(2));
  file.flush();
  std::ofstream(hardware, std::ios::app) << "# the same numbers, but who knows\n";
  std::filesystem::last_write_time(hardware, std::filesystem::last_write_time(hardware) + std::chrono::seconds(2));
  file.append(std::span(all).subspan(2));
  try {
    file.flush();
    FAIL() << "points of a changed file were written";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("mine.yaml was changed while the sweep ran"));
  }
  EXPECT_NO_THROW(file.flush()) << "what could not be written is given up, not kept";
}

/// While it lives no file of this process may grow beyond some bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t most) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{most, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int) = nullptr;
};

TEST_F(PointsFileTest, goes_on_behind_points_that_the_disk_did_not_take) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 2000], step: 1}}\n");
  std::vector<SweepPoint> points(2000);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].index = i, points[i].error = std::string(200, 'x');
  PointsFile file(path("points"), s);
  file.append(std::span(points).first(3));
  file.flush();
  {
    const FullDisk full(50000);
    EXPECT_THROW(
        {
          file.append(std::span(points).subspan(3));
          file.flush();
        },
        OutputError);
  }
  EXPECT_NO_THROW(file.flush());
  EXPECT_NO_THROW(file.append(std::span(points).subspan(3, 4)));
  EXPECT_NO_THROW(file.flush());
  EXPECT_NO_THROW(file.append(std::span(points).subspan(7)));
  EXPECT_NO_THROW(file.flush());
}

TEST_F(PointsFileTest, an_edited_hardware_file_is_named_when_a_sweep_goes_on) {
  const std::string hardware = path("mine.yaml");
  std::filesystem::copy_file(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "hw/nvidia-t4.yaml", hardware);
  const Sweep s = sweep("axes: {hardware: [nvidia-h200-sxm-141gb, " + hardware + "]}\n");
  { PointsFile(path("points"), s).append(run(s)); }
  EXPECT_EQ(refusal(path("points"), s), "");
  const std::string before = bytes_of(hardware);
  std::ofstream(hardware, std::ios::app) << "# edited\n";
  EXPECT_THAT(refusal(path("points"), s), HasSubstr("mine.yaml has changed since its points were predicted"));
  std::ofstream(hardware, std::ios::trunc) << before;
  EXPECT_EQ(refusal(path("points"), s), "");
  EXPECT_EQ(PointsFile(path("points"), s).known().size(), 2u);
}

TEST_F(PointsFileTest, corrupted_points_files_are_refused_or_as_good_as_whole) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 60], step: 1}}\n");
  const std::vector<SweepPoint> all = run(s);
  { PointsFile(path("whole"), s).append(all); }
  const std::string whole = bytes_of(path("whole"));
  std::mt19937_64 random(11);
  int refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    std::string bytes = whole;
    const auto place = [&] { return static_cast<std::size_t>(random() % bytes.size()); };
    switch (trial % 5) {
      case 0: bytes[place()] ^= static_cast<char>(1u << random() % 8); break;
      case 1: bytes.resize(place()); break;
      case 2: bytes.replace(place(), 1, std::string(random() % 64, static_cast<char>(random()))); break;
      case 3: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(place() / 2), random() % 4096, '\0'); break;
      default: bytes[random() % 100] ^= static_cast<char>(1u << random() % 8); break;
    }
    std::ofstream(path("bad"), std::ios::binary | std::ios::trunc) << bytes;
    std::vector<SweepPoint> known;
    try {
      known = PointsFile(path("bad"), s).known();
    } catch (const UserError&) {
      ++refused;
    }
    for (const SweepPoint& point : known) EXPECT_EQ(point, all[point.index]);
    for (const char* left : {"bad-journal", "bad-wal", "bad-shm"}) std::filesystem::remove(path(left));
  }
  EXPECT_GT(refused, 100);
}

TEST_F(PointsFileTest, a_points_file_slows_no_sweep_down) {
  const Sweep s =
      sweep("axes: {training.micro_batch: {range: [1, 100], step: 1}, host.scale: {range: [1, 2], points: 100}}\n");
  std::vector<SweepPoint> points(s.grid_size());
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i].index = i, points[i].metrics[0] = 1.0 / static_cast<double>(i + 1);
  const auto begin = std::chrono::steady_clock::now();
  {
    PointsFile file(path("points"), s);
    for (std::size_t i = 0; i < points.size(); i += 5) file.append(std::span(points).subspan(i, 5));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));  // 5,000 points/s under any load
  EXPECT_EQ(PointsFile(path("points"), s).known(), points);
}

}  // namespace
}  // namespace ridgeline
