#include "sim/trace/json_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

/// No value of a profiler's array comes near this: a file in which brackets do not close is not read on for ever.
constexpr std::size_t kLargestValue = std::size_t{256} << 20;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

JsonPieces::JsonPieces(const std::string& path, Progress progress) : path_(path), source_(path, std::move(progress)) {}

std::int64_t JsonPieces::line() {
  if (counted_ < begin_of_value_) {
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(counted_);
    lines_ += std::count(from, buffer_.begin() + static_cast<std::ptrdiff_t>(begin_of_value_), '\n');
    counted_ = begin_of_value_;
  }
  return lines_ + 1;
}

void JsonPieces::fail(const std::string& what) { throw UserError(fmt::format("{}:{}: {}", path_, line(), what)); }

void JsonPieces::fail_at_end(std::string_view inside) {
  if (!source_.damage().empty()) {
    if (may_end_early_) throw CutOff{source_.damage()};
    fail(source_.damage());
  }
  if (may_end_early_)
    throw CutOff{fmt::format("the text ends inside {}, after {} bytes: the file is cut off", inside,
                             before_buffer_ + static_cast<std::int64_t>(end_))};
  fail(fmt::format("the text ends inside {}, after {} bytes: the file is cut off", inside,
                   before_buffer_ + static_cast<std::int64_t>(end_)));
}

bool JsonPieces::refill() {
  // What lies before the value at hand is no longer needed.
  line();
  const std::size_t keep = begin_of_value_;
  counted_ -= keep;
  before_buffer_ += static_cast<std::int64_t>(keep);
  buffer_.erase(0, keep);
  end_ -= keep;
  at_ -= keep;
  begin_of_value_ -= keep;
  buffer_.resize(end_);
  const bool more = source_.read(buffer_);
  end_ = buffer_.size();
  buffer_.append(kPadding, ' ');
  return more;
}

char JsonPieces::peek() {
  while (true) {
    while (at_ < end_ && is_space(buffer_[at_])) ++at_;
    if (at_ < end_) return buffer_[at_];
    begin_of_value_ = at_;
    if (!refill()) return '\0';
  }
}

std::size_t JsonPieces::end_of_value() {
  std::size_t i = at_;
  std::size_t depth = 0;
  bool in_string = false;
  const char first = buffer_[at_];
  const bool compound = first == '{' || first == '[', text = first == '"';
  while (true) {
    for (; i < end_; ++i) {
      const char c = buffer_[i];
      if (in_string) {
        if (c == '\\') {
          ++i;  // the escaped character, which may come with the next piece of text
        } else if (c == '"') {
          in_string = false;
          if (text) return i + 1;
        }
        continue;
      }
      if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (!compound) return i;
        if (--depth == 0) return i + 1;
      } else if (!compound && (c == ',' || is_space(c))) {
        return i;
      }
    }
    if (i - at_ > kLargestValue)
      fail(fmt::format("a single value of more than {} MB: brackets or quotes do not close", kLargestValue >> 20));
    const std::size_t scanned = i - at_;
    if (!refill()) {
      if (!compound && !text && source_.damage().empty()) return end_;
      fail_at_end(key_.empty() ? "a value" : fmt::format("\"{}\"", key_));
    }
    i = at_ + scanned;
  }
}

std::string JsonPieces::take_key() {
  begin_of_value_ = at_;
  if (buffer_[at_] != '"') fail(fmt::format("not JSON: expected a name in quotes, got '{}'", buffer_[at_]));
  const std::size_t end = end_of_value();
  std::string key(buffer_, at_ + 1, end - at_ - 2);
  at_ = end;
  if (peek() != ':') {
    if (at_ >= end_) fail_at_end(fmt::format("\"{}\"", key));
    fail(fmt::format("not JSON: expected ':' after \"{}\"", key));
  }
  ++at_;
  return key;
}

void JsonPieces::take_separator(char closing, Where after) {
  const char c = peek();
  if (c == ',') {
    ++at_;
    if (peek() != closing) return;  // a comma too many before the end is let pass
  }
  if (buffer_[at_] != closing) {
    begin_of_value_ = at_;
    fail(fmt::format("not JSON: expected ',' or '{}', got '{}'", closing, buffer_[at_]));
  }
  ++at_;
  where_ = after;
}

bool JsonPieces::deliver(JsonPiece& piece, bool element) {
  begin_of_value_ = at_;
  if (peek() == '\0') fail_at_end(key_.empty() ? "the array" : fmt::format("\"{}\"", key_));
  begin_of_value_ = at_;
  const std::size_t end = end_of_value();
  if (end == at_) fail(fmt::format("not JSON: expected a value, got '{}'", buffer_[at_]));
  piece.key = key_;
  piece.text = std::string_view(buffer_).substr(at_, end - at_);
  piece.element = element;
  at_ = end;
  return true;
}

namespace {

std::string no_json(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  return first >= 32 && first < 127 ? fmt::format("not JSON: it begins with '{}'", text.front())
                                    : fmt::format("not JSON: it begins with byte 0x{:02x}", first);
}

}  // namespace

bool JsonPieces::next(JsonPiece& piece) {
  if (!cut_off_.empty()) return false;
  try {
    return take(piece);
  } catch (CutOff& cut) {
    cut_off_ = std::move(cut.why);
    return false;
  }
}

bool JsonPieces::take(JsonPiece& piece) {
  while (true) {
    const char c = peek();
    switch (where_) {
      case Where::start:
        if (c == '\xef' && end_ - at_ >= 3) {  // byte order mark
          at_ += 3;
          continue;
        }
        begin_of_value_ = at_;
        if (c == '\0') {
          if (!source_.damage().empty()) fail(source_.damage());
          fail("the file holds nothing but white space");
        }
        if (c != '{' && c != '[') fail(no_json(std::string_view(buffer_).substr(at_, end_ - at_)));
        ++at_;
        where_ = c == '{' ? Where::object : Where::root_array;
        if (peek() == (c == '{' ? '}' : ']')) {
          ++at_;
          where_ = Where::end;
        }
        continue;
      case Where::object:
        if (c == '\0') fail_at_end("the outermost object");
        if (key_taken_) {
          take_separator('}', Where::end);
          if (where_ == Where::end) continue;
        }
        if (peek() == '\0') fail_at_end("the outermost object");
        key_ = take_key();
        key_taken_ = true;
        if (peek() == '\0') fail_at_end(fmt::format("\"{}\"", key_));
        if (buffer_[at_] == '[') {
          ++at_;
          where_ = Where::array_in_object;
          if (peek() == ']') {
            ++at_;
            where_ = Where::object;
          }
          continue;
        }
        return deliver(piece, false);
      case Where::array_in_object:
      case Where::root_array: {
        const bool whole = where_ == Where::root_array && source_.damage().empty() && may_end_early_;
        if (c == '\0' && whole && element_delivered_) return false;
        if (c == '\0') fail_at_end(key_.empty() ? "the array" : fmt::format("\"{}\"", key_));
        if (element_delivered_) {
          const Where inside = where_;
          take_separator(']', inside == Where::root_array ? Where::end : Where::object);
          if (whole && where_ == inside && peek() == '\0') return false;
          if (where_ != inside) {
            element_delivered_ = false;
            continue;
          }
        }
        element_delivered_ = true;
        return deliver(piece, true);
      }
      case Where::end:
        if (c != '\0') {
          begin_of_value_ = at_;
          fail("not JSON: text after the end of the document");
        }
        if (!source_.damage().empty()) fail(source_.damage());
        return false;
    }
  }
}

}  // namespace ridgeline::trace
