#include "sim/recognition/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/input/text_source.h"
#include "sim/units/nearest_name.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace ridgeline::recognition {
namespace {

constexpr std::size_t kPart = std::size_t{256} << 10;  ///< bytes of each end of a file that are looked at

std::string first_part(std::ifstream& file) {
  std::string part(kPart, '\0');
  file.read(part.data(), static_cast<std::streamsize>(part.size()));
  part.resize(static_cast<std::size_t>(file.gcount()));
  file.clear();
  return part;
}

std::string last_part(std::ifstream& file, std::uintmax_t size) {
  if (size <= kPart) return "";
  file.seekg(static_cast<std::streamoff>(size - std::min<std::uintmax_t>(kPart, size - kPart)));
  return first_part(file);
}

/// "" where it cannot be decompressed.
std::string decompressed_part(const std::string& path) {
  try {
    TextSource source(path);
    std::string text;
    source.read(text);
    text.resize(std::min(text.size(), kPart));
    return text;
  } catch (const UserError&) {
    return "";
  }
}

Recognised named(std::string_view kind) { return {kind.empty() ? nullptr : &file_kind(kind), "", ""}; }

Recognised kind_of_sample(const Sample& sample) {
  if (const std::string_view kind = kind_by_bytes(sample); !kind.empty()) return named(kind);
  // Words that stand at the begin of a file, or that JSON cannot have, come before keys.
  if (const Recognised seen = kind_by_keys(sample); seen.kind != nullptr) return seen;
  return named(kind_by_words(sample));
}

std::string shell_word(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-+=@%,:").find(c) != std::string_view::npos;
  });
  return plain ? path : "'" + path + "'";
}

/// `{}`, `{stem}`, `{folder}` and `{first}` of a row's command line.
std::string filled(std::string_view line, const std::string& path, const std::string& first) {
  const std::filesystem::path file(path);
  std::string stem = file.stem().string(), folder = file.parent_path().string(), out;
  if (folder.empty()) folder = ".";
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t open = line.find('{', at);
    out += line.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = line.find('}', open);
    const std::string_view name = line.substr(open + 1, close - open - 1);
    if (name == "stem") out += shell_word(stem);
    else if (name == "folder") out += shell_word(folder);
    else if (name == "first") out += shell_word(first);
    else out += shell_word(path);
    at = close + 1;
  }
  return out;
}

bool takes(const FileKind& kind, std::string_view role) {
  std::string_view taken = kind.taken;
  while (!taken.empty()) {
    const std::size_t end = std::min(taken.find(' '), taken.size());
    if (taken.substr(0, end) == role) return true;
    taken.remove_prefix(std::min(end + 1, taken.size()));
  }
  return false;
}

/// False where a row's command line names a file beside this one that is not there.
bool is_there(std::string_view line, const std::string& path) {
  const std::size_t beside = line.find("{folder}/");
  if (beside == std::string_view::npos) return true;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string_view name = line.substr(beside + 9, line.find(' ', beside) - beside - 9);
  std::error_code ignored;
  return std::filesystem::exists(folder / std::string(name), ignored);
}

/// "a scenario, a sweep": the kinds that a command or option takes.
std::string taken_by(std::string_view role) {
  std::string list;
  for (const FileKind& kind : file_kinds())
    if (takes(kind, role))
      list += fmt::format("{}{}", list.empty() ? "" : ", ",
                          kind.what.starts_with("holds ") ? kind.what.substr(6) : kind.what);
  return list;
}

}  // namespace

Recognised recognise(const std::string& path) {
  check_readable(path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return kind_of_folder(path);
  if (!std::filesystem::is_regular_file(path, error)) return {};  // a pipe is read once
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string ending = in_small_letters(std::filesystem::path(path).extension().string());
  const std::string head = first_part(file), tail = last_part(file, std::filesystem::file_size(path, error));
  if (!head.starts_with(kGzipBegin)) {
    std::string_view text = head;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    return kind_of_sample({path, ending, text, tail});
  }
  const std::string inside = decompressed_part(path);
  const std::string inner_ending = in_small_letters(std::filesystem::path(path).stem().extension().string());
  const Recognised seen = inside.empty() ? Recognised{} : kind_of_sample({path, inner_ending, inside, "", true});
  return seen.kind == nullptr || seen.kind->name == "empty" || seen.kind->name == "binary" ? named("gzip") : seen;
}

Recognised recognise_bytes(const std::string& path, std::string_view bytes) {
  const std::string ending = in_small_letters(std::filesystem::path(path).extension().string());
  const std::string_view head = bytes.substr(0, kPart);
  const std::string_view tail = bytes.size() > kPart ? bytes.substr(std::max(kPart, bytes.size() - kPart)) : "";
  return kind_of_sample({path, ending == ".gz" ? "" : ending, head, tail, ending == ".gz"});
}

std::string wrong_file(const std::string& path, std::string_view role) {
  const Recognised seen = recognise(path);
  if (seen.kind == nullptr || takes(*seen.kind, role)) return "";
  const std::string_view what = seen.kind->what;
  std::string sentence = fmt::format("{}: {}{}{}", path, what.starts_with("holds ") ? "" : "is ", what, seen.detail);
  const std::string line = is_there(seen.kind->type, path) ? filled(seen.kind->type, path, seen.first) : "";
  const std::string behind = filled(seen.kind->behind, path, seen.first);
  if (!line.empty()) sentence += fmt::format("; type: {}", line);
  if (!behind.empty()) sentence += fmt::format("{}{}", behind.starts_with("then ") ? ", " : "; ", behind);
  if (line.empty())
    if (const std::string others = taken_by(role); !others.empty())
      sentence += fmt::format("; {} reads {}", role, others);
  return sentence;
}

std::string file_of_message(const std::string& message) {
  constexpr std::size_t kLongest = 4096;
  std::error_code ignored;
  for (std::size_t colon = message.find(':'); colon < kLongest; colon = message.find(':', colon + 1))
    if (const std::string begin = message.substr(0, colon); std::filesystem::exists(begin, ignored)) return begin;
  return "";
}

std::string about_file_of(const std::string& message) {
  const std::string path = file_of_message(message);
  if (path.empty()) return "";
  const Recognised seen = recognise(path);
  for (const std::string_view role :
       {"predict", "replay", "sweep", "--model", "--hardware", "--cluster", "--host", "--software", "--from"})
    if (seen.kind == nullptr || takes(*seen.kind, role)) return "";
  return wrong_file(path, "");
}

void check_file(const std::string& path, std::string_view role) {
  if (const std::string sentence = wrong_file(path, role); !sentence.empty()) throw UserError(sentence);
}

}  // namespace ridgeline::recognition
