// Where the shipped data lies: hw/, models/, scenarios/.
#pragma once

#include <filesystem>
#include <string_view>

namespace ridgeline::config {

/// Folder `name` ("hw", "models") of $RIDGELINE_DATA if that is set, else of the first folder above the program that
/// has a hw/ with descriptions in it, else of the source tree the program was built from. Throws UserError when
/// RIDGELINE_DATA has no hw/. The folder `name` itself need not exist.
std::filesystem::path data_folder(std::string_view name);

}  // namespace ridgeline::config
