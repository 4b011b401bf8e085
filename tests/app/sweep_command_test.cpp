// ridgeline sweep as a person runs it: alone, interrupted, and as several processes under mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "sim/input/sqlite.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SweepCommand : public testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path("sweep-command");
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// `points` of batches on three GPUs.
  std::string sweep_file(int points) {
    const std::string file = (folder_ / "sweep.yaml").string();
    std::ofstream(file) << "scenario: {hardware: nvidia-t4, model: {family: gpt2, layers: 6, heads: 4, hidden: 256, "
                           "vocabulary: 4000, max_positions: 512}, training: {micro_batch: 2, sequence_length: 128, "
                           "precision: fp32}}\naxes: {hardware: [nvidia-t4, nvidia-rtx-3090, nvidia-h200-sxm-141gb], "
                           "training.micro_batch: {range: [1, "
                        << points / 3 << "], step: 1}}\ngoal: {search: pareto, of: [step_time, memory, price]}\n";
    return file;
  }
  static std::int64_t points_in(const std::string& file) {
    sqlite::Connection connection(file);
    sqlite::Statement count(connection, "SELECT count(*) FROM point");
    return count.step() ? count.integer(0) : 0;
  }
  /// A line of a script that does `what` beside the rest of it as soon as some hundred points are in the file,
  /// whatever the speed of the machine.
  static std::string once_points_are_in(const std::string& file, const std::string& what) {
    return "(for i in $(seq 1200); do sleep 0.1; [ $(stat -c %s " + file + ") -gt 60000 ] && " + what +
           " && exit; done) >/dev/null 2>&1 &\n";
  }
  static std::string shell(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
    last_exit_ = ::pclose(pipe);
    return out;
  }
  static int last_exit_;
};
int SweepCommand::last_exit_ = 0;

TEST_F(SweepCommand, json_csv_and_table_tell_the_same) {
  const std::string file = sweep_file(30);
  const json all = json::parse(run_program("sweep " + file + " --format json").out);
  ASSERT_EQ(all["points"].size(), 30u);
  ASSERT_FALSE(all["best"].empty());
  const json& first = all["points"][0];
  EXPECT_EQ(first["at"]["hardware"], "nvidia-t4");
  EXPECT_EQ(first["at"]["training.micro_batch"], "1");
  const std::string csv = run_program("sweep " + file + " --format csv").out;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 31);
  EXPECT_THAT(csv, HasSubstr("\n0,nvidia-t4,1," + first["step_time_s"].dump()));
  const std::string text = run_program("sweep " + file).out;
  EXPECT_THAT(text, HasSubstr("30 points"));
  EXPECT_THAT(text, HasSubstr("nothing is better in all of step time, memory, price"));
}

TEST_F(SweepCommand, shipped_sweeps_run) {
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/scenarios/sweeps")) {
    if (entry.path().stem() == "six-gpus") continue;  // the benchmark: ten thousand points
    const ProgramRun run = run_program("sweep " + entry.path().string() + " --format json");
    ASSERT_EQ(run.exit_code, 0) << entry.path() << run.err;
    const json all = json::parse(run.out);
    for (const json& point : all["points"]) EXPECT_FALSE(point.contains("error")) << point;
  }
}

TEST_F(SweepCommand, twice_the_bandwidth_halves_the_ridge_point) {
  const json all = json::parse(run_program("sweep scenarios/sweeps/twice-the-bandwidth.yaml --format json").out);
  for (std::size_t i = 0; i < all["points"].size(); i += 4)
    for (const std::size_t precision : {0, 1}) {
      const json &one = all["points"][i + precision], &two = all["points"][i + 2 + precision];
      EXPECT_EQ(one["at"]["hardware"], two["at"]["hardware"]);
      EXPECT_NEAR(two["ridge_flop_per_byte"].get<double>(), 0.5 * one["ridge_flop_per_byte"].get<double>(), 1e-6);
      EXPECT_LT(two["step_time_s"].get<double>(), one["step_time_s"].get<double>());
    }
}

TEST_F(SweepCommand, goes_on_from_a_points_file_and_says_so) {
  const std::string file = sweep_file(60), points = (folder_ / "points.db").string();
  const std::string whole = run_program("sweep " + file + " --format json").out;
  for (const char* threads : {"1", "2", "9"}) {
    std::filesystem::remove(points);
    EXPECT_EQ(run_program("sweep " + file + " --format json --threads " + threads + " --points " + points).out, whole);
  }
  {
    sqlite::Connection half(points);
    half.run("DELETE FROM point WHERE point % 2 = 1");
  }
  const ProgramRun run = run_program("sweep " + file + " --format json --points " + points);
  EXPECT_EQ(run.out, whole);
  EXPECT_THAT(run.err, HasSubstr("30 points are there already, 30 to go"));
  EXPECT_EQ(points_in(points), 60);
  const std::string table = run_program("sweep " + file + " --format csv").out;
  EXPECT_EQ(run_program("sweep " + file + " --format csv --points " + points).out, table);
}

TEST_F(SweepCommand, goes_on_after_it_was_killed) {
  const std::string file = sweep_file(3000), points = (folder_ / "points.db").string();
  const std::string whole = run_program("sweep " + file + " --format json").out;
  shell("cd " RIDGELINE_SOURCE_DIR " && timeout -s KILL 0.6 " RIDGELINE_BINARY " sweep " + file + " --points " +
        points);
  const ProgramRun run = run_program("sweep " + file + " --format json --points " + points);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, whole);
  EXPECT_EQ(points_in(points), 3000);
}

TEST_F(SweepCommand, a_stopped_sweep_keeps_what_is_done) {
  const std::string file = sweep_file(30000), points = (folder_ / "points.db").string();
  const std::string stopper = (folder_ / "stopped.sh").string();
  std::ofstream(stopper) << "#!/bin/sh\n"
                         << once_points_are_in(points, "kill -INT $$") << "exec " << RIDGELINE_BINARY << " sweep "
                         << file << " --points " << points << "\n";
  const std::string out = shell("cd " RIDGELINE_SOURCE_DIR " && sh " + stopper);
  EXPECT_THAT(out, HasSubstr("the same command goes on from there"));
  EXPECT_TRUE(WIFEXITED(last_exit_));
  EXPECT_EQ(WEXITSTATUS(last_exit_), 130) << "what shells and make take for Ctrl+C";
  EXPECT_GT(points_in(points), 100);
  EXPECT_LT(points_in(points), 30000);
}

TEST_F(SweepCommand, mistakes_are_told_once_and_exit_with_2) {
  EXPECT_EQ(run_program("sweep scenarios/sweeps/none.yaml").exit_code, 2);
  EXPECT_EQ(run_program("sweep").exit_code, 2);
  const std::string file = sweep_file(30);
  EXPECT_EQ(run_program("sweep " + file + " --points " + folder_.string()).exit_code, 2);
  EXPECT_EQ(run_program("sweep " + file + " --threads 0").exit_code, 2);
}

class SweepUnderMpirun : public SweepCommand {
 protected:
  const std::string mpirun_ =
      "cd " RIDGELINE_SOURCE_DIR
      " && mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none ";
  void SetUp() override {
    SweepCommand::SetUp();
    if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
    if (shell(mpirun_ + "-n 2 " RIDGELINE_BINARY " sweep /nowhere.yaml").find("without Boost.MPI") != std::string::npos)
      GTEST_SKIP() << "built without Boost.MPI";
  }
};

TEST_F(SweepUnderMpirun, several_ranks_give_what_one_process_gives_to_the_bit) {
  const std::string file = sweep_file(600);
  const std::string alone = run_program("sweep " + file + " --format json").out;
  for (const char* ranks : {"2", "3"}) {
    const std::string out = (folder_ / "out.json").string();
    const std::string points = (folder_ / ("points-" + std::string(ranks))).string();
    shell(mpirun_ + "-n " + ranks + " " RIDGELINE_BINARY " sweep " + file + " --threads 1 --format json --points " +
          points + " >" + out);
    EXPECT_EQ(last_exit_, 0);
    EXPECT_EQ(points_in(points), 600);
    std::ifstream in(out);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), alone) << ranks;
  }
}

TEST_F(SweepUnderMpirun, a_mistake_is_told_once) {
  const std::string out = shell(mpirun_ + "-n 3 " RIDGELINE_BINARY " sweep scenarios/sweeps/none.yaml");
  EXPECT_NE(last_exit_, 0);
  // Among what mpirun and the libraries under it may say, which can name the program too.
  int told = 0;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    told += line.starts_with("ridgeline: ") && line.find("none.yaml") != std::string::npos;
  EXPECT_EQ(told, 1) << out;
}

TEST_F(SweepUnderMpirun, a_killed_rank_ends_the_sweep_with_a_clear_error_and_the_finished_points_kept) {
  const std::string file = sweep_file(30000), points = (folder_ / "points.db").string();
  // Rank 1 kills itself as soon as some points are in the file.
  const std::string killer = (folder_ / "rank.sh").string();
  std::ofstream(killer) << "#!/bin/sh\nif [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then\n  "
                        << once_points_are_in(points, "kill -9 $$") << "fi\nexec " << RIDGELINE_BINARY << " sweep "
                        << file << " --threads 1 --points " << points << "\n";
  // A second between telling a rank to stop and killing it, and three, are too little where other tests run beside.
  const std::string out = shell(mpirun_ + "--mca odls_base_sigkill_timeout 10 -n 3 sh " + killer);
  EXPECT_NE(last_exit_, 0);
  EXPECT_THAT(out, HasSubstr("the same command goes on from there"));
  EXPECT_GT(points_in(points), 100);
  EXPECT_LT(points_in(points), 30000);
}

}  // namespace
}  // namespace ridgeline
