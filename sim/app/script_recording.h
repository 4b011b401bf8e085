// A training script, run by the person's own Python under the recorder of python/ridgeline/record.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::app {

/// The trace of a script's steady step, in a folder of its own that goes with the object, also where a signal ends the
/// program while the script runs. What the script prints goes to standard error.
class ScriptRecording {
 public:
  /// Python is $RIDGELINE_PYTHON, else python3 of the PATH. Throws UserError where it is missing, where the script is
  /// missing, fails or makes no step (its own words are on standard error), and where the recorder is not installed.
  ScriptRecording(const std::string& script, const std::vector<std::string>& arguments);
  ~ScriptRecording();
  ScriptRecording(const ScriptRecording&) = delete;
  ScriptRecording& operator=(const ScriptRecording&) = delete;

  [[nodiscard]] std::string trace() const { return trace_.string(); }

 private:
  std::filesystem::path folder_, trace_;
};

}  // namespace ridgeline::app
