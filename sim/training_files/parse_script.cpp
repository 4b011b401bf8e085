#include "sim/training_files/parse_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/make_node.h"
#include "sim/config/parse_yaml.h"

namespace ridgeline::training_files {
namespace {

using config::ConfigError;
using config::Node;
using config::Origin;
using config::scalar_node;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  return true;
}

std::optional<double> number_of(std::string_view text) {
  std::string plain;
  for (const char c : trimmed(text))
    if (c != '_') plain += c;
  double value = 0.0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (plain.empty() || error != std::errc{} || end != plain.data() + plain.size()) return std::nullopt;
  return value;
}

/// `5 * 8 / 2` from left to right; nothing where it is more than that.
std::optional<std::string> product_of(std::string_view text) {
  double value = 1.0;
  char operation = '*';
  while (true) {
    const std::size_t next = text.find_first_of("*/");
    const std::optional<double> factor = number_of(text.substr(0, next));
    if (!factor) return std::nullopt;
    value = operation == '*' ? value * *factor : value / *factor;
    if (next == std::string_view::npos) return fmt::format("{}", value);
    operation = text[next];
    text.remove_prefix(next + 1);
    if (operation == '/' && !text.empty() && text.front() == '/') text.remove_prefix(1);
  }
}

struct Word {
  std::string text;
  Origin origin;
  bool begins = false;  ///< a line, or a command
};

/// The words of a script with its variables put in, each with its place.
class ScriptWords {
 public:
  ScriptWords(std::string_view text, std::string_view name)
      : text_(text), name_(std::make_shared<const std::string>(name)) {}

  std::vector<Word> all() {
    while (at_ < text_.size()) word();
    return std::move(words_);
  }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_, line_begin_ = at_ + 1;
    ++at_;
  }
  void word() {
    constexpr std::string_view kBlanks = " \t", kEnds = "\r\n;&|()";
    for (; at_ < text_.size(); step()) {
      if (kEnds.find(text_[at_]) != std::string_view::npos) begins_ = true;
      else if (kBlanks.find(text_[at_]) == std::string_view::npos) break;
    }
    if (at_ >= text_.size()) return;
    if (text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') step();
      return;
    }
    unknown_ = false;
    Word out{"", {name_, line_, static_cast<int>(at_ - line_begin_) + 1}, std::exchange(begins_, false)};
    bool quoted = false;
    char quote = '\0';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        step();
        if (text_[at_] != '\n' && text_[at_] != '\r') out.text += text_[at_];
        else if (out.text.empty()) return begins_ = out.begins, step();
        step();
      } else if (quote != '\0' && c == quote) {
        quote = '\0';
        step();
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
        quoted = true;
        step();
      } else if (c == '$' && quote != '\'') {
        out.text += variable();
      } else if (quote == '\0' && std::string_view(" \t\r\n;&|()").find(c) != std::string_view::npos) {
        break;
      } else {
        out.text += c;
        step();
      }
      if (out.text.size() > config::kMaxBytes) throw ConfigError(out.origin, "", "a word that grows without an end");
    }
    keep(std::move(out), quoted);
  }
  /// An assignment is remembered; a text of several words in quotes is several words.
  void keep(Word out, bool quoted) {
    if (const std::size_t equals = out.text.find('=');
        equals != std::string::npos && is_name(std::string_view(out.text).substr(0, equals))) {
      const std::string value = out.text.substr(equals + 1);
      if (value.empty() && unknown_) variables_.erase(out.text.substr(0, equals));  // of an argument of the script
      else variables_[out.text.substr(0, equals)] = value;
      if (value.find("--") == std::string::npos) return;
      out.text = value;
    }
    if (quoted && out.text.find("--") != std::string::npos && out.text.find(' ') != std::string::npos) {
      std::string_view rest = out.text;
      while (!(rest = trimmed(rest)).empty()) {
        const std::size_t end = std::min(rest.find_first_of(" \t\n\r"), rest.size());
        if (rest.substr(0, end) != "\\") words_.push_back({std::string(rest.substr(0, end)), out.origin, false});
        rest.remove_prefix(end);
      }
    } else if (!out.text.empty() || unknown_) {
      words_.push_back(std::move(out));
    }
    if (words_.size() > config::kMaxNodes) throw ConfigError(words_.back().origin, "", "more than a million words");
  }
  std::string variable() {
    step();
    if (text_.substr(at_, 2) == "((") {
      const std::size_t end = text_.find("))", at_);
      if (end == std::string_view::npos) return step(), "";
      const std::string inside = substituted(text_.substr(at_ + 2, end - at_ - 2));
      while (at_ < end + 2) step();
      return product_of(inside).value_or("");
    }
    std::string_view name;
    std::string fallback;
    if (at_ < text_.size() && text_[at_] == '{') {
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) return step(), "";
      name = text_.substr(at_ + 1, end - at_ - 1);
      if (const std::size_t other = name.find(":-"); other != std::string_view::npos) {
        fallback = name.substr(other + 2);
        if (fallback.size() > 1 && fallback.front() == '"' && fallback.back() == '"')
          fallback = fallback.substr(1, fallback.size() - 2);
        name = name.substr(0, other);
      }
      while (at_ <= end) step();
    } else {
      std::size_t end = at_;
      while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
        ++end;
      name = text_.substr(at_, end - at_);
      while (at_ < end) step();
    }
    if (name.ends_with("[@]") || name.ends_with("[*]")) return "";  // its words were met where the array is made
    unknown_ = variables_.find(std::string(name)) == variables_.end() && fallback.empty();
    const auto found = variables_.find(std::string(name));
    return found != variables_.end() ? found->second : fallback;
  }
  std::string substituted(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t begin = text[i] == '$' ? i + 1 : i;
      if (begin < text.size() && text[begin] == '{') ++begin;
      std::size_t end = begin;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
      const std::string name(text.substr(begin, end - begin));
      if (is_name(name)) {
        const auto found = variables_.find(name);
        out += found != variables_.end() ? found->second : "?";
        i = end < text.size() && text[end] == '}' ? end + 1 : end;
      } else {
        out += text[i++];
      }
    }
    return out;
  }

  std::string_view text_;
  std::shared_ptr<const std::string> name_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
  bool begins_ = true;
  bool unknown_ = false;  ///< the word has a variable that the script does not set
  std::map<std::string, std::string> variables_;
  std::vector<Word> words_;
};

void set(Node& root, const std::string& key, Node value) {
  const Origin origin = value.origin;
  if (Node* known = root.find(key)) *known = std::move(value);
  else root.entries.push_back({key, origin, std::move(value)});
}

Node empty_mapping(std::string_view name) {
  return config::mapping_node({std::make_shared<const std::string>(name), 1, 1});
}

}  // namespace

Node parse_arguments(std::string_view text, std::string_view name) {
  if (text.size() > config::kMaxBytes)
    throw ConfigError({std::make_shared<const std::string>(name), 0, 0}, "", "larger than 1 MiB");
  const std::vector<Word> words = ScriptWords(text, name).all();
  Node root = empty_mapping(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Word& word = words[i];
    if (!word.text.starts_with("--") || word.text.size() < 3) continue;
    const std::size_t equals = word.text.find('=');
    std::string key = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(key.begin(), key.end(), '_', '-');
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(word.text.substr(equals + 1));
    else
      while (i + 1 < words.size() && !words[i + 1].begins && !words[i + 1].text.starts_with("--") &&
             !words[i + 1].text.starts_with('>') && values.size() < 64)
        values.push_back(words[++i].text);
    set(root, key, scalar_node(values.empty() ? "true" : values.front(), word.origin));
  }
  return root;
}

Node parse_assignments(std::string_view text, std::string_view name) {
  if (text.size() > config::kMaxBytes)
    throw ConfigError({std::make_shared<const std::string>(name), 0, 0}, "", "larger than 1 MiB");
  Node root = empty_mapping(name);
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals + 1 >= line.size() || line[equals + 1] == '=') continue;
    std::string_view key = line.substr(0, equals);
    key = key.substr(0, key.find(':'));  // name: type = value
    if (key.empty() || std::isspace(static_cast<unsigned char>(key.front())) != 0 || !is_name(trimmed(key))) continue;
    std::string_view value = trimmed(line.substr(equals + 1));
    const Origin origin{root.origin.name, line_number, 1};
    const std::string target(trimmed(key));
    if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
      const std::size_t close = value.find(value.front(), 1);
      if (close != std::string_view::npos)
        set(root, target, scalar_node(std::string(value.substr(1, close - 1)), origin));
      continue;
    }
    value = trimmed(value.substr(0, value.find('#')));
    if (value == "True" || value == "False") set(root, target, scalar_node(value == "True" ? "true" : "false", origin));
    else if (value == "None") set(root, target, scalar_node("none", origin));
    else if (const auto product = product_of(value)) set(root, target, scalar_node(*product, origin));
  }
  return root;
}

}  // namespace ridgeline::training_files
