// What --version says; CMakeLists.txt has the number.
#pragma once

namespace ridgeline::app {

inline constexpr const char* kProgramAndVersion = "ridgeline " RIDGELINE_VERSION;

}  // namespace ridgeline::app
