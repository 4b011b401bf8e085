// Kinds of files that people have, and the command that takes each: one row a kind in file_kinds.cpp.
//
// The rows of byte_kinds.cpp (first bytes), text_kinds.cpp (words) and document_kinds.cpp (keys) tell kinds apart, by
// their names.
#pragma once

#include <string_view>
#include <vector>

namespace ridgeline::recognition {

struct FileKind {
  std::string_view name;   ///< "snapshot"
  std::string_view what;   ///< "a memory snapshot of PyTorch": behind "is"
  std::string_view taken;  ///< by these commands and options, with blanks between: "memory", "--model"
  std::string_view type;  ///< command line to type; {} is the file, {stem} its name without ending, {folder} its folder
  std::string_view behind = {};  ///< a sentence behind the command line, or alone where there is none
};

const std::vector<FileKind>& file_kinds();
/// Throws std::logic_error for a name without a row.
const FileKind& file_kind(std::string_view name);

}  // namespace ridgeline::recognition
