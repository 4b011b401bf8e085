// Where the shipped data lies: hw/, models/, scenarios/.
#pragma once

#include <filesystem>
#include <string_view>

namespace ridgeline::config {

/// Folder `name` ("hw", "models") of $RIDGELINE_DATA if that is set; else of the first folder above the program, or
/// above the library that this code is in, that has a hw/ with descriptions or a share/ridgeline with one in it; else
/// of the source tree that it was built from. Throws UserError where there is none. The folder `name` itself need not
/// exist.
std::filesystem::path data_folder(std::string_view name);

}  // namespace ridgeline::config
