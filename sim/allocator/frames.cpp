#include "sim/allocator/frames.h"

#include <fmt/format.h>

#include <string_view>

namespace ridgeline {
namespace {

struct Frame {
  std::string_view file, name;
  std::int64_t line = 0;
};

Frame frame_of(const PickleValue& value) {
  Frame frame;
  const PickleDict* dict = value.as_dict();
  if (dict == nullptr) return frame;
  const auto text = [&](const char* key) -> std::string_view {
    const PickleValue* held = dict->find(key);
    const std::string* found = held != nullptr ? held->as_text() : nullptr;
    return found != nullptr ? std::string_view(*found) : std::string_view{};
  };
  frame.file = text("filename");
  frame.name = text("name");
  if (const PickleValue* line = dict->find("line"))
    if (const auto* number = std::get_if<std::int64_t>(&line->value)) frame.line = *number;
  return frame;
}

bool is_python(const Frame& frame) { return frame.file.ends_with(".py") || frame.file.starts_with('<'); }

bool is_of_pytorch(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.starts_with("torch/");
}

std::string_view last_part(std::string_view file) {
  return file.substr(file.find_last_of("/\\") == std::string_view::npos ? 0 : file.find_last_of("/\\") + 1);
}

std::string text_of(const Frame& frame) {
  return fmt::format("{}:{} {}", last_part(frame.file), frame.line, frame.name);
}

}  // namespace

std::string place_of(const PickleDict& of) {
  const PickleValue* frames = of.find("frames");
  const PickleSequence* list = frames != nullptr ? frames->as_sequence() : nullptr;
  if (list == nullptr) return "";
  std::string inside;
  for (const PickleValue& item : list->items) {
    const Frame frame = frame_of(item);
    if (!is_python(frame)) continue;
    if (!is_of_pytorch(frame.file))
      return inside.empty() ? text_of(frame) : fmt::format("{}, called by {}", inside, text_of(frame));
    if (inside.empty()) inside = fmt::format("{} in {}:{}", frame.name, last_part(frame.file), frame.line);
  }
  return inside;
}

}  // namespace ridgeline
