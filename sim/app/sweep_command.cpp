// ridgeline sweep: every point of a grid or a sample of it, and the best of them; alone or under mpirun.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/output_files.h"
#include "sim/app/page_output.h"
#include "sim/app/print_report.h"
#include "sim/app/stop_signal.h"
#include "sim/output/standard_error.h"
#include "sim/output/standard_output.h"
#include "sim/report/sweep_report.h"
#include "sim/scenario/scenario_file.h"
#include "sim/study/sweep/points_file.h"
#include "sim/study/sweep/sweep_ranks.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct SweepOptions {
  std::string file, points_file, format = "text", html;
  int threads = 0;
  std::size_t rows = 40;
};

/// A line that is written over, with what is left to do, where a person watches.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(::isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_ && done_ > 0) print_message_as_it_is(fmt::format("\r{:60}\r", ""));
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::size_t points) {
    done_ += points;
    const auto now = Clock::now();
    if (!shown_ || (now - last_ < std::chrono::milliseconds(200) && done_ < total_)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double left = seconds / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    print_message_as_it_is(fmt::format("\r{} of {} points, about {:.0f} s left   ", done_, total_, left));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t total_, done_ = 0;
  bool shown_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

std::vector<std::uint64_t> still_to_do(const Sweep& sweep, const std::vector<SweepPoint>& known) {
  std::vector<std::uint64_t> todo;
  auto next = known.begin();
  for (const std::uint64_t index : sweep.points()) {
    while (next != known.end() && next->index < index) ++next;
    if (next == known.end() || next->index != index) todo.push_back(index);
  }
  return todo;
}

void check_that_some_ran(const std::vector<SweepPoint>& points) {
  for (const SweepPoint& point : points)
    if (point.ran()) return;
  if (!points.empty()) throw UserError(fmt::format("no point can run; the first says: {}", points.front().error));
}

void print_sweep(const SweepOptions& options, const Sweep& sweep, const std::vector<SweepPoint>& points) {
  if (!options.html.empty())
    write_page(options.html, sweep.title, nlohmann::ordered_json::array(), {{"sweep", sweep_json(sweep, points)}});
  if (options.format == "csv") print("{}", sweep_csv(sweep, points));
  else if (options.format == "json")
    print("{}\n", sweep_json(sweep, points).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(sweep_text(sweep, points, options.rows));
}

/// Rank 0, or the only one.
void lead(const SweepOptions& options, const Sweep& sweep, Ranks& ranks, std::optional<PointsFile>& file,
          const std::atomic<bool>& stop_requested) {
  std::vector<SweepPoint> points = file ? file->known() : std::vector<SweepPoint>{};
  const std::vector<std::uint64_t> todo = still_to_do(sweep, points);
  if (file && !points.empty())
    print_message("{}: {} points are there already, {} to go\n", file->path(), points.size(), todo.size());
  {
    Progress progress(todo.size());
    const std::vector<SweepPoint> found =
        ranks.run(sweep, todo, {options.threads, &stop_requested, [&](std::span<const SweepPoint> done) {
                                  if (file) file->append(done);
                                  progress.add(done.size());
                                }});
    points.insert(points.end(), found.begin(), found.end());
    if (file) file->flush();
  }
  std::sort(points.begin(), points.end(), [](const SweepPoint& a, const SweepPoint& b) { return a.index < b.index; });
  if (stop_requested) {
    const std::size_t all = sweep.points().size();
    throw Stopped(file
                      ? fmt::format("stopped: {} of {} points are in {}; the same command goes on from there",
                                    points.size(), all, file->path())
                      : fmt::format("stopped with {} of {} points done; --points FILE keeps them", points.size(), all));
  }
  check_that_some_ran(points);
  print_sweep(options, sweep, points);
}

void run(const SweepOptions& options) {
  int argc = 0;
  char** argv = nullptr;
  const std::unique_ptr<Ranks> joined = join_ranks(argc, argv);
  Ranks& ranks = *joined;
  const std::atomic<bool>& stop_requested = stop_on_signals();
  const Budget budget({.memory = memory_budget()}, {}, &stop_requested);
  const UnderBudget under(&budget);
  std::optional<Sweep> sweep;
  std::optional<PointsFile> file;
  std::string mistake;
  try {
    sweep = load_sweep(scenario_file(options.file));
    check_axes(*sweep);
    if (!options.points_file.empty() && ranks.rank() == 0) file.emplace(options.points_file, *sweep);
  } catch (const UserError& error) {
    mistake = error.what();
  }
  // One message for a mistake that all ranks see. The others end well: mpirun would stop rank 0 before it has spoken.
  if (!ranks.agreed(mistake.empty())) {
    if (ranks.rank() == 0) throw UserError(mistake);
    return;
  }
  if (!mistake.empty()) throw UserError(fmt::format("rank {}: {}", ranks.rank(), mistake));
  try {
    if (ranks.rank() == 0) lead(options, *sweep, ranks, file, stop_requested);
    else ranks.run(*sweep, {}, {options.threads, &stop_requested, {}});
  } catch (const std::exception& error) {
    if (ranks.count() == 1) throw;
    if (ranks.rank() == 0) print_message("ridgeline: {}\n", error.what());
    file.reset();  // leaving destroys nothing
    ranks.leave(exit_code_of(error));
  }
}

}  // namespace

void add_sweep_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<SweepOptions>();
  auto* command = program.add_subcommand("sweep", "a grid or sample over any keys, and the best of its points");
  command->add_option("sweep", options->file, "sweep file (YAML)")->required();
  add_output_option(*command, "--points", options->points_file,
                    "keep finished points in this file (an SQLite database) and go on from it");
  command->add_option("--threads", options->threads, "of this process; all cores if not given")
      ->check(CLI::Range(1, 1024));
  command->add_option("--rows", options->rows, "of the table, at most")->check(CLI::Range(1, 1'000'000));
  command->add_option("--format", options->format, "text, csv or json")->check(CLI::IsMember({"text", "csv", "json"}));
  add_output_option(*command, "--html", options->html, "write one self-contained page with pictures to this file");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
