// Kinds of files by their first bytes and their structure, whatever their names: the one place that knows.
//
//   const Recognised seen = recognise("trace.json");
//   seen.kind->what;   // "a trace of PyTorch's profiler"
#pragma once

#include <string>
#include <string_view>

#include "sim/recognition/file_kinds.h"

namespace ridgeline::recognition {

struct Recognised {
  const FileKind* kind = nullptr;  ///< null where it cannot be told
  std::string detail;              ///< behind `what`: " (LLaMA-Factory)", or ""
  std::string first;               ///< of a folder the file that is meant
};

/// First part of a file, decompressed where it is gzip, and its last part where it is plain.
struct Sample {
  std::string path, ending;  ///< ending in small letters: ".json"
  std::string_view head, tail;
  bool compressed = false;  ///< it was gzip
};

/// Reads a part of the file. Never throws for what is in it.
Recognised recognise(const std::string& path);

/// The same of a file whose bytes, decompressed, were read already.
Recognised recognise_bytes(const std::string& path, std::string_view bytes);

// The steps of recognise(), in this order. Each gives a kind's name or "".
std::string_view kind_by_bytes(const Sample& sample);
Recognised kind_by_keys(const Sample& sample);
std::string_view kind_by_words(const Sample& sample);
Recognised kind_of_folder(const std::string& path);

/// "FILE: is a memory snapshot of PyTorch; type: ridgeline memory FILE" where `role` (a command, or an option with its
/// dashes) does not take such a file; "" where it does, or where the file's kind cannot be told.
std::string wrong_file(const std::string& path, std::string_view role);
/// The file that a message about a file begins with; "" where it begins with none.
std::string file_of_message(const std::string& message);
/// The sentence about a file that a message begins with and that no scenario and no option of a question can name.
std::string about_file_of(const std::string& message);
/// Throws UserError with that sentence.
void check_file(const std::string& path, std::string_view role);

}  // namespace ridgeline::recognition
