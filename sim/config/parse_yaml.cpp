// yaml-cpp's parser calls back for every scalar and bracket; the tree is built from those calls instead of from
// YAML::Node, because the callbacks see duplicate keys, positions of keys and the depth while it grows.
#include "sim/config/parse_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include "sim/units/utf8.h"

namespace ridgeline::config {
namespace {

class TextBuffer : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // only ever read
    setg(begin, begin, begin + text.size());
  }
};

std::size_t size_of(const Node& node) {
  std::size_t total = 1;
  for (const Node& item : node.items) total += size_of(item);
  for (const Entry& entry : node.entries) total += size_of(entry.value);
  return total;
}

int depth_of(const Node& node) {
  int deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depth_of(item));
  for (const Entry& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
  return deepest + 1;
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> name) : name_(std::move(name)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(leaf(Node::Kind::null, mark, ""), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    add(leaf(Node::Kind::scalar, mark, text), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "this alias stands inside the value it repeats");
    Node copy = found->second;
    nodes_ += size_of(copy);
    if (nodes_ > kMaxNodes) fail(mark, "its aliases expand to more than a million values");
    if (depth_of(copy) + static_cast<int>(open_.size()) > kMaxDepth) fail_depth(mark);
    add(std::move(copy), YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::mapping, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Node take() { return std::move(root_); }
  [[nodiscard]] Origin origin(const YAML::Mark& mark) const {
    return mark.is_null() ? Origin{name_, 1, 1} : Origin{name_, mark.line + 1, mark.column + 1};
  }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    Origin key_origin;
    std::unordered_map<std::string, int> lines;  ///< of the keys so far
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view message) const {
    throw ConfigError(origin(mark), "", message);
  }
  [[noreturn]] void fail_depth(const YAML::Mark& mark) const {
    fail(mark, fmt::format("nested more than {} levels deep", kMaxDepth));
  }

  Node leaf(Node::Kind kind, const YAML::Mark& mark, std::string text) {
    Node node;
    node.kind = kind;
    node.scalar = std::move(text);
    node.origin = origin(mark);
    return node;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= kMaxDepth) fail_depth(mark);
    if (!open_.empty() && open_.back().node.kind == Node::Kind::mapping && !open_.back().has_key) {
      fail(mark, "a key must be a plain word, not a list or a mapping (is a closing bracket missing?)");
    }
    open_.push_back({leaf(kind, mark, ""), anchor, false, {}, {}, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  /// Puts a finished node where the parser stands: a key, the value of a key, an item, or the document itself.
  void add(Node node, YAML::anchor_t anchor) {
    ++nodes_;
    if (anchor != YAML::NullAnchor) keep(node, anchor);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, std::move(node));
    } else {
      parent.node.entries.push_back({std::move(parent.key), parent.key_origin, std::move(node)});
      parent.has_key = false;
    }
  }

  /// For aliases of it. Anchors within anchors hold the innermost values once each: those count too.
  void keep(const Node& node, YAML::anchor_t anchor) {
    nodes_ += size_of(node);
    if (nodes_ > kMaxNodes) throw ConfigError(node.origin, "", "its anchors keep more than a million values");
    anchors_[anchor] = node;
  }

  void take_key(Open& parent, Node node) {
    if (node.kind != Node::Kind::scalar) {
      throw ConfigError(node.origin, "", fmt::format("a key must be a plain word, got {}", node.describe()));
    }
    const auto [first, is_new] = parent.lines.emplace(node.scalar, node.origin.line);
    if (!is_new) {
      throw ConfigError(node.origin, node.scalar, fmt::format("duplicate key, first given on line {}", first->second));
    }
    parent.key = std::move(node.scalar);
    parent.key_origin = node.origin;
    parent.has_key = true;
  }

  std::shared_ptr<const std::string> name_;
  Node root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
};

/// Control characters and bytes that are no UTF-8 mean a binary, damaged or differently encoded file; yaml-cpp's own
/// words for them help nobody.
void check_text(std::string_view text, const std::shared_ptr<const std::string>& name) {
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t' && byte != '\r' && byte != '\n') || byte == 0x7f;
  };
  const auto control = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_control) - text.begin());
  const std::size_t wrong = std::min(control, first_not_utf8(text));
  if (wrong >= text.size()) return;
  const std::string_view before = text.substr(0, wrong);
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  const auto column = static_cast<int>(wrong - (before.rfind('\n') + 1)) + 1;  // npos + 1 is the first line's begin
  const auto byte = static_cast<unsigned char>(text[wrong]);
  throw ConfigError({name, line, column}, "",
                    byte >= 0x80 && text.find('\0') == text.npos
                        ? fmt::format("byte 0x{:02x} is no UTF-8; save the file as UTF-8", byte)
                        : fmt::format("byte 0x{:02x} does not belong in a YAML text; is this a binary file?", byte));
}

std::string reason(const YAML::Exception& error, std::string_view text) {
  std::string message = "not valid YAML: " + error.msg;
  const std::size_t begin = error.mark.pos < 0 ? 0 : std::min(static_cast<std::size_t>(error.mark.pos), text.size());
  const std::size_t line_begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
  if (text.substr(line_begin, begin + 1 - line_begin).find('\t') != std::string_view::npos) {
    message += " (indent with spaces, not tabs)";
  } else if (error.msg.find("sequence flow") != std::string::npos) {
    message += " (close the [)";
  } else if (error.msg.find("map flow") != std::string::npos) {
    message += " (close the {)";
  } else if (error.msg.find("illegal map value") != std::string::npos) {
    message += " (quote a value that has a colon and a blank in it)";
  }
  return message;
}

}  // namespace

Node parse_yaml(std::string_view text, std::string_view name) {
  const auto shared_name = std::make_shared<const std::string>(name);
  if (text.size() > kMaxBytes) {
    throw ConfigError({shared_name, 0, 0}, "",
                      fmt::format("{:.1f} MiB of text; a description has at most {} MiB",
                                  static_cast<double>(text.size()) / 1048576.0, kMaxBytes >> 20));
  }
  check_text(text, shared_name);
  // At the end of the text yaml-cpp misses a quote that was never closed if line ends follow it.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  TreeBuilder builder(shared_name);
  try {
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Node root = builder.take();
    if (!root.origin.name) root.origin = {shared_name, 1, 1};
    TreeBuilder rest(shared_name);
    if (parser.HandleNextDocument(rest)) {
      throw ConfigError(rest.take().origin, "", "a second document starts here; a file holds one");
    }
    return root;
  } catch (const YAML::DeepRecursion& error) {
    throw ConfigError(builder.origin(error.mark), "", fmt::format("nested more than {} levels deep", kMaxDepth));
  } catch (const YAML::Exception& error) {
    throw ConfigError(builder.origin(error.mark), "", reason(error, text));
  }
}

}  // namespace ridgeline::config
