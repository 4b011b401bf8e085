// Options of every command that takes a scenario: a file, flags that are short for its keys, and --set.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace ridgeline::app {

class ScenarioOptions {
 public:
  /// The object must outlive the parsing of the command line.
  void add_to(CLI::App& command);
  /// For a recording in the place of the file, without the flags that describe a step.
  void add_recording_to(CLI::App& command);
  /// All but the file, for commands that take several.
  void add_flags_to(CLI::App& command);
  void add_cuda_graphs_to(CLI::App& command);
  /// A recording in the place of the file; returns what stood there, before `more`.
  std::vector<std::string> replace_file(const std::string& recording, std::vector<std::string> more);
  /// Throws UserError, before work that takes long, where no GPU is named (unless `every_gpu`) or none of that name.
  void mind_hardware(bool every_gpu) const;
  /// From now on source() names sizes that a question of flags alone leaves out.
  void assume_sizes() { assumes_sizes_ = true; }
  [[nodiscard]] ScenarioSource source() const;

 private:
  /// Changes in the order in which they were typed: the later one wins, as advice typed behind a question should.
  [[nodiscard]] std::vector<config::Override> typed_changes(bool inference) const;
  /// The value of a short flag; empty where it was not given.
  [[nodiscard]] std::string given(std::string_view flag) const;
  /// Says once that one flag replaces another.
  void tell_replaced(std::string_view later, std::string_view earlier) const;
  /// The scenario says how a model is used, not how it is trained.
  [[nodiscard]] bool uses_the_model() const;
  /// Throws UserError where flags use a model and nothing says how long its prompt is.
  void check_prompt(bool inference) const;

  std::string file_;
  std::vector<std::string> sets_, parallel_;
  std::vector<std::string> values_;  ///< of short_flags(); empty: not given
  const CLI::App* command_ = nullptr;
  std::vector<const CLI::Option*> flags_;  ///< of short_flags(); null: not of this command
  const CLI::Option *set_ = nullptr, *parallel_option_ = nullptr;
  mutable bool told_ = false;  ///< which flag replaces which
  bool assumes_sizes_ = false;
  bool datasheet_ = false, recording_ = false, cuda_graphs_ = false;
  bool takes_file_ = false;  ///< one scenario, which flags alone may describe
};

}  // namespace ridgeline::app
