#include "sim/recognition/outline.h"

#include <cctype>
#include <utility>
#include <vector>

namespace ridgeline::recognition {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kMostKeys = 20000;

/// Reads as far as the text is JSON and ends without complaint where it is not.
class JsonOutline {
 public:
  explicit JsonOutline(std::string_view text) : text_(text) {}

  Outline run() {
    value("", 0);
    return std::move(keys_);
  }

 private:
  char peek() {
    at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string string() {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_];
    }
    ++at_;
    return out;
  }
  static std::string joined(const std::string& path, const std::string& step) {
    return path.empty() ? step : path + "." + step;
  }

  /// False at the end of what can be read.
  bool value(const std::string& path, int depth) {
    constexpr int kDeepest = 64;
    if (keys_.size() > kMostKeys || depth > kDeepest) return false;
    const char c = peek();
    if (c == '{' || c == '[') return container(c == '{', path, depth);
    if (c == '"') {
      std::string held = string();
      note(path, depth, std::move(held));
      return at_ <= text_.size();
    }
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    if (end == at_) return false;
    note(path, depth, std::string(text_.substr(at_, end - at_)));
    at_ = end;
    return at_ < text_.size();
  }
  bool container(bool object, const std::string& path, int depth) {
    ++at_;
    note(path, depth, "");
    for (bool first = true;; first = false) {
      char c = peek();
      if (c == ',' && !first) ++at_, c = peek();
      if (c == (object ? '}' : ']')) {
        ++at_;
        return true;
      }
      std::string step = "[]";
      if (object) {
        if (c != '"') return false;
        step = string();
        if (peek() != ':') return false;
        ++at_;
      }
      // Elements behind the first say nothing new, and a trace has millions.
      if (!value(joined(path, step), first || object ? depth + 1 : kOutlineDepth + 1)) return false;
    }
  }
  void note(const std::string& path, int depth, std::string held) {
    if (depth > 0 && depth <= kOutlineDepth) keys_.try_emplace(path, std::move(held));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Outline keys_;
};

std::string without_quotes(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return std::string(text.substr(1, text.size() - 2));
  return std::string(text);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks), end = text.find_last_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin + 1);
}

bool is_key(std::string_view key) {
  if (key.empty()) return false;
  for (const char c : key)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("_-./").find(c) == std::string_view::npos)
      return false;
  return true;
}

/// Keys of "{a: 1, b: 2}" on one line.
void flow_keys(std::string_view text, const std::string& path, Outline& keys) {
  int depth = 0;
  std::size_t begin = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == ':' && depth == 1)
      if (const std::string key = without_quotes(trimmed(text.substr(begin, i - begin))); is_key(key)) {
        const std::size_t end = std::min(text.find_first_of(",}", i), text.size());
        keys.try_emplace(path + "." + key, without_quotes(trimmed(text.substr(i + 1, end - i - 1))));
      }
    if (text[i] == ',' && depth == 1) begin = i + 1;
    if (text[i] == '}' || text[i] == ']') --depth;
  }
}

}  // namespace

bool begins_as_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Outline json_outline(std::string_view text) { return JsonOutline(text).run(); }

Outline yaml_outline(std::string_view text) {
  Outline keys;
  std::vector<std::pair<std::size_t, std::string>> open;  ///< indentation and path
  while (!text.empty() && keys.size() < kMostKeys) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || line[indent] == '#') continue;
    std::string step;
    if (line.substr(indent).starts_with("- ")) {
      step = "[].";
      indent += 2;
    }
    const std::size_t colon = line.find(':', indent);
    if (colon == std::string_view::npos ||
        (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\r'))
      continue;
    const std::string key = without_quotes(trimmed(line.substr(indent, colon - indent)));
    if (!is_key(key)) continue;
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    const std::string path = (open.empty() ? "" : open.back().second + ".") + step + key;
    std::string_view held = trimmed(line.substr(colon + 1));
    if (const std::size_t comment = held.find(" #"); comment != std::string_view::npos)
      held = trimmed(held.substr(0, comment));
    if (open.size() < kOutlineDepth) keys.try_emplace(path, held.starts_with('{') ? "" : without_quotes(held));
    if (held.starts_with('{') && open.size() + 1 < kOutlineDepth) flow_keys(held, path, keys);
    open.emplace_back(indent, path);
  }
  return keys;
}

}  // namespace ridgeline::recognition
