// Ridgeline as a library: how long a training step of a transformer takes on a described GPU, how much memory it needs,
// and why.
//
//   ridgeline::Simulator simulator;
//   const ridgeline::Answer answer = simulator.predict({.file = "scenarios/bert-large-fp32.yaml"});
//   std::cout << answer.step().time.value() << " s\n" << answer.text();
//
// Quantities are in base units (ridgeline/quantity.h): seconds, bytes, FLOPs, watts. A mistake in a question or in a
// file it names is thrown as Mistake, whose what() is one line for a person; anything else that escapes is a fault of
// the library. All of it may be used from several threads at once. A call that makes the process grow by more than
// twice RIDGELINE_MEMORY_BUDGET ("4 GiB"; 1.3 GB where it is not set) throws Mistake too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/quantity.h"

#define RIDGELINE_API __attribute__((visibility("default")))

namespace ridgeline {

/// A mistake of the asker, with its place where it has one.
class RIDGELINE_API Mistake : public std::runtime_error {
 public:
  Mistake(const std::string& what, std::string file, int line, int column, std::string key);
  ~Mistake() override;
  /// File, or the change ("--set hardware.dram.bandwidth=4 TB/s"), that holds the mistake; empty: not known.
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] int line() const { return line_; }  ///< from 1; 0: not known
  [[nodiscard]] int column() const { return column_; }
  [[nodiscard]] const std::string& key() const { return key_; }  ///< dotted: "hardware.dram.bandwidth"

 private:
  std::string file_, key_;
  int line_, column_;
};

/// Thrown to whoever waits for an answer that was stopped.
class RIDGELINE_API Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override;
  ~Stopped() override;
};

/// Calls that this thread makes while it lives throw Stopped soon after `stop` is requested.
class RIDGELINE_API UntilStopped {
 public:
  explicit UntilStopped(std::stop_token stop);
  ~UntilStopped();
  UntilStopped(const UntilStopped&) = delete;
  UntilStopped& operator=(const UntilStopped&) = delete;

 private:
  std::stop_token before_;
};

/// What is asked. Keys of scenarios, hardware and models: docs/hardware-keys.md and the shipped files.
struct Question {
  std::string file;                 ///< a scenario in YAML, or a recorded step; empty: `text`, or all of it in `set`
  std::string text;                 ///< a scenario as YAML or JSON, in the place of a file
  std::vector<std::string> set;     ///< "KEY=VALUE", applied in order: "training.micro_batch=8"
  std::string engine = "analytic";  ///< "roofline", "analytic" or "simulate"
  bool advice = false;              ///< try changes that people make
  bool sensitivity = false;         ///< a tenth more of every number of the chip
};

/// The steady step.
struct Step {
  Seconds time, low, high;  ///< low and high: from measured residuals of comparable kernels and hosts
  Seconds gpu_busy, host_time;
  std::int64_t kernels = 0;
  double samples_per_s = 0.0, tokens_per_s = 0.0;  ///< 0: a recording that does not say
  double mfu = 0.0;                                ///< model FLOPs over the datasheet's peak
  Watts power;                                     ///< of the board, on average
  Joules energy;
  bool validated = true;  ///< kernels of these kinds and sizes were measured on this GPU with this software
};

struct Memory {
  bool known = true;  ///< false: a recording that does not say
  Bytes peak_allocated, peak_reserved;
  Bytes device_used, capacity;  ///< with the CUDA context
  bool fits = true;             ///< also if all took as much more as comparable runs did
};

/// Kernels of the step, those of one name and shape together, longest first; a column a field.
struct KernelTable {
  std::vector<std::string> name, shape, op, limiter;
  std::vector<std::int64_t> count;
  std::vector<double> time_s, flops, read_bytes, written_bytes, dram_bytes, l2_bytes;  ///< of all launches together
};

/// Launches on the GPU in stream order; seconds from the begin of the step on the GPU.
struct TimelineTable {
  std::vector<std::string> names, shapes;  ///< of the kinds of launches
  std::vector<std::int32_t> kind;          ///< entry of `names`
  std::vector<std::int32_t> phase;         ///< 0 set-up, 1 forward, 2 backward, 3 clipping, 4 optimizer, 5 other
  std::vector<std::int32_t> layer;         ///< -1: none
  std::vector<double> issued_s, start_s, end_s;
};

/// The allocator after each allocation and free of the step; empty for a recording that does not say.
struct MemoryTable {
  std::vector<double> at_s;  ///< start of the kernel that follows
  std::vector<std::int64_t> allocated, reserved;
};

/// An answer; parts that were not asked for yet are made when they are, once. Cheap to copy: copies are one answer.
class RIDGELINE_API Answer {
 public:
  struct Parts;
  explicit Answer(std::shared_ptr<const Parts> parts);
  ~Answer();
  Answer(const Answer&);
  Answer(Answer&&) noexcept;
  Answer& operator=(const Answer&);
  Answer& operator=(Answer&&) noexcept;

  [[nodiscard]] const std::string& title() const;
  [[nodiscard]] const std::string& hardware() const;
  [[nodiscard]] const Step& step() const;
  [[nodiscard]] const Memory& memory() const;
  [[nodiscard]] const std::vector<std::string>& notes() const;  ///< approximations and warnings
  [[nodiscard]] const KernelTable& kernels() const;
  [[nodiscard]] const TimelineTable& timeline() const;
  [[nodiscard]] const MemoryTable& memory_over_time() const;

  [[nodiscard]] std::string json() const;             ///< as `ridgeline predict --format json` prints it
  [[nodiscard]] std::string text() const;             ///< for people
  [[nodiscard]] std::string html() const;             ///< one self-contained page; Mistake where none was built in
  [[nodiscard]] std::string chrome_trace() const;     ///< for Perfetto
  [[nodiscard]] std::string memory_snapshot() const;  ///< for pytorch.org/memory_viz: a pickle

 private:
  std::shared_ptr<const Parts> parts_;
};

/// Answers questions, and remembers what they share: descriptions, op traces, kernel times.
class RIDGELINE_API Simulator {
 public:
  /// Of the shipped descriptions: those of $RIDGELINE_DATA, else those installed with the library.
  Simulator();
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// The step is predicted before this returns; throws Mistake, and Stopped once `stop` is requested.
  Answer predict(const Question& question, std::stop_token stop = {}) const;

  /// Two to six questions side by side; JSON as `ridgeline compare --format json`. `labels` may be empty.
  [[nodiscard]] std::string compare(std::span<const Question> questions, std::span<const std::string> labels) const;
  /// The largest micro-batch that fits; JSON as `ridgeline fit --format json`.
  [[nodiscard]] std::string fit(const Question& question) const;
  /// All points of a sweep file; JSON as `ridgeline sweep --format json`. 0 threads: as many as there are cores.
  [[nodiscard]] std::string sweep(const std::string& file, int threads = 0) const;
  /// The best ways to train on so many GPUs (several counts: each); JSON as `ridgeline plan --format json`. `batch`:
  /// sequences of a step of all GPUs, 0 for those of the scenario.
  [[nodiscard]] std::string plan(const Question& question, std::span<const std::int64_t> gpus, std::int64_t batch = 0,
                                 int threads = 0) const;

  /// Kernel cases, a line of JSON each (docs/kernel-cases.md), answered in their order: each with `predicted`, or with
  /// `error` where it is a mistake. `set` changes the hardware: "dram.bandwidth=4 TB/s".
  [[nodiscard]] std::string kernels(std::string_view cases, const std::string& hardware,
                                    std::span<const std::string> set = {}, const std::string& engine = "analytic",
                                    const std::string& software = "pytorch-2.11") const;
  /// A recorded allocation history or memory snapshot through the caching allocator; JSON as `ridgeline memory --format
  /// json`. `settings` as PYTORCH_ALLOC_CONF, `capacity` as "24 GiB"; both may be empty.
  [[nodiscard]] std::string memory(const std::string& file, const std::string& settings = "",
                                   const std::string& capacity = "") const;

  [[nodiscard]] std::vector<std::string> hardware() const;  ///< names of the shipped GPUs
  [[nodiscard]] std::vector<std::string> models() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// "0.1.0"
RIDGELINE_API const char* version();

}  // namespace ridgeline
