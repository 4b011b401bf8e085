// One function a command: it adds its subcommand to the program and runs when the person chose it.
#pragma once

#include <CLI/CLI.hpp>

namespace ridgeline::app {

/// What the process returns: 0, 2 where a command reports mistakes in its input itself and goes on, 3 where --check
/// finds that a step does not fit.
struct Outcome {
  int exit_code = 0;
};

void add_predict_command(CLI::App& program, Outcome& outcome);
void add_fit_command(CLI::App& program, Outcome& outcome);
void add_fits_command(CLI::App& program, Outcome& outcome);
void add_compare_command(CLI::App& program, Outcome& outcome);
void add_sweep_command(CLI::App& program, Outcome& outcome);
void add_plan_command(CLI::App& program, Outcome& outcome);
void add_phases_command(CLI::App& program, Outcome& outcome);
void add_exercise_command(CLI::App& program, Outcome& outcome);
void add_kernels_command(CLI::App& program, Outcome& outcome);
void add_collectives_command(CLI::App& program, Outcome& outcome);
void add_hardware_command(CLI::App& program, Outcome& outcome);
void add_models_command(CLI::App& program, Outcome& outcome);
void add_memory_command(CLI::App& program, Outcome& outcome);
void add_calibrate_command(CLI::App& program, Outcome& outcome);
void add_validate_command(CLI::App& program, Outcome& outcome);
void add_refit_command(CLI::App& program, Outcome& outcome);
void add_replay_command(CLI::App& program, Outcome& outcome);
void add_serve_command(CLI::App& program, Outcome& outcome);
void add_schema_command(CLI::App& program, Outcome& outcome);
void add_document_commands(CLI::App& program);

}  // namespace ridgeline::app
