// What --version says; CMakeLists.txt has the number, cmake/Revision.cmake the revision.
#pragma once

#include <string>

namespace ridgeline::app {

inline constexpr const char* kProgramAndVersion = "ridgeline " RIDGELINE_VERSION;

/// "ridgeline 0.1.0, revision 7c051c8", for outputs that are kept.
std::string tool_and_revision();
/// Number, revision of the source and versions of the libraries, a line each.
std::string version_text();

}  // namespace ridgeline::app
