#include "sim/training_files/parse_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"

namespace ridgeline::training_files {
namespace {

using config::ConfigError;
using config::Node;
using config::Origin;

class TomlParser {
 public:
  TomlParser(std::string_view text, std::string_view name)
      : text_(text), name_(std::make_shared<const std::string>(name)) {}

  Node parse() {
    if (text_.size() > config::kMaxBytes) fail("larger than 1 MiB, the most a description may have");
    Node root = mapping();
    Node* table = &root;
    while (skip_lines(), at_ < text_.size()) {
      if (text_[at_] == '[') table = &open_table(root);
      else add_pair(*table, 0);
      end_line();
    }
    return root;
  }

 private:
  [[nodiscard]] Origin here() const {
    const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
    const auto line_begin = before.rfind('\n');
    return {name_, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            static_cast<int>(before.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1)) + 1};
  }
  [[noreturn]] void fail(std::string_view message) const { throw ConfigError(here(), "", message); }
  [[nodiscard]] Node node(Node::Kind kind) const {
    Node out;
    out.kind = kind;
    out.origin = here();
    return out;
  }
  [[nodiscard]] Node mapping() const { return node(Node::Kind::mapping); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_comment() {
    skip_blanks();
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_lines() {
    while (at_ < text_.size()) {
      skip_comment();
      if (peek() != '\n' && peek() != '\r') return;
      ++at_;
    }
  }
  void end_line() {
    skip_comment();
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') fail("expected the end of the line");
  }

  std::string key_word() {
    if (peek() == '"' || peek() == '\'') return quoted();
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '-') ++at_;
    if (at_ == begin) fail("expected a key");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::vector<std::string> key_path() {
    std::vector<std::string> path;
    while (true) {
      skip_blanks();
      path.push_back(key_word());
      if (path.size() > static_cast<std::size_t>(config::kMaxDepth)) fail("nested too deeply");
      skip_blanks();
      if (peek() != '.') return path;
      ++at_;
    }
  }

  /// The table at `path` below `node`, made where it is not there; of an array of tables the last one.
  Node& descend(Node& node, const std::vector<std::string>& path) {
    Node* at = &node;
    for (const std::string& step : path) {
      Node* next = at->find(step);
      if (next == nullptr) {
        at->entries.push_back({step, here(), mapping()});
        next = &at->entries.back().value;
      } else if (next->kind == Node::Kind::list && !next->items.empty()) {
        next = &next->items.back();
      }
      if (next->kind != Node::Kind::mapping) fail(fmt::format("{} is {}, not a table", step, next->describe()));
      at = next;
    }
    return *at;
  }
  Node& open_table(Node& root) {
    const bool array = peek(1) == '[';
    at_ += array ? 2 : 1;
    std::vector<std::string> path = key_path();
    if (peek() != ']' || (array && peek(1) != ']')) fail("expected ']'");
    at_ += array ? 2 : 1;
    if (!array) return descend(root, path);
    const std::string last = path.back();
    path.pop_back();
    Node& parent = descend(root, path);
    Node* list = parent.find(last);
    if (list == nullptr) {
      parent.entries.push_back({last, here(), node(Node::Kind::list)});
      list = &parent.entries.back().value;
    }
    if (list->kind != Node::Kind::list) fail(fmt::format("{} is {}, not an array of tables", last, list->describe()));
    list->items.push_back(mapping());
    return list->items.back();
  }
  void add_pair(Node& table, int depth) {
    const Origin origin = here();
    std::vector<std::string> path = key_path();
    if (peek() != '=') fail("expected '=' behind the key");
    ++at_;
    skip_blanks();
    const std::string last = path.back();
    path.pop_back();
    if (descend(table, path).find(last) != nullptr) throw ConfigError(origin, last, "given twice");
    Node value = read_value(depth);
    descend(table, path).entries.push_back({last, origin, std::move(value)});
  }

  Node read_value(int depth) {
    if (depth > config::kMaxDepth) fail("nested too deeply");
    if (peek() == '[') return read_array(depth);
    if (peek() == '{') return read_inline_table(depth);
    Node value = node(Node::Kind::scalar);
    if (peek() == '"' || peek() == '\'') {
      value.scalar = quoted();
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(",]}#\n\r").find(text_[at_]) == std::string_view::npos) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (word.empty()) fail("expected a value");
    value.scalar = word;
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 || word.front() == '+' || word.front() == '-')
      std::erase(value.scalar, '_');  // 1_000_000
    return value;
  }
  Node read_array(int depth) {
    Node list = node(Node::Kind::list);
    ++at_;
    while (true) {
      skip_lines();
      if (peek() == ']') break;
      list.items.push_back(read_value(depth + 1));
      skip_lines();
      if (peek() == ',') ++at_;
      else if (peek() != ']') fail("expected ',' or ']'");
    }
    ++at_;
    return list;
  }
  Node read_inline_table(int depth) {
    if (depth > config::kMaxDepth) fail("nested too deeply");
    Node table = mapping();
    ++at_;
    while (true) {
      skip_blanks();
      if (peek() == '}') break;
      add_pair(table, depth + 1);
      skip_blanks();
      if (peek() == ',') ++at_;
      else if (peek() != '}') fail("expected ',' or '}'");
    }
    ++at_;
    return table;
  }

  std::string quoted() {
    const char quote = peek();
    const bool long_form = peek(1) == quote && peek(2) == quote;
    at_ += long_form ? 3 : 1;
    if (long_form && peek() == '\n') ++at_;
    std::string out;
    while (true) {
      if (at_ >= text_.size() || (!long_form && peek() == '\n')) fail("the text in quotes does not end");
      const char c = text_[at_++];
      if (c == quote && !long_form) return out;
      if (c == quote && peek() == quote && peek(1) == quote) return at_ += 2, out;
      if (c == '\\' && quote == '"') out += escaped();
      else out += c;
    }
  }
  char escaped() {
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case '"': return '"';
      case '\\': return '\\';
      case '\n': return ' ';
      case 'u': at_ += 4; return '?';  // no key or value that is read here has such a letter
      case 'U': at_ += 8; return '?';
      default: fail("an escape that TOML does not have");
    }
  }

  std::string_view text_;
  std::shared_ptr<const std::string> name_;
  std::size_t at_ = 0;
};

}  // namespace

Node parse_toml(std::string_view text, std::string_view name) { return TomlParser(text, name).parse(); }

}  // namespace ridgeline::training_files
