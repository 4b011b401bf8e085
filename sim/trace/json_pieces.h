// A large JSON document, value by value: elements of the arrays directly under the root, every other value whole.
//
// Profilers write one array of millions of small objects. Only the object at hand is held, so a file of gigabytes needs
// little memory and one bad object can be left out without losing the rest. What is inside a value is not checked here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/input/text_source.h"

namespace ridgeline::trace {

struct JsonPiece {
  std::string key;        ///< under the root object; empty where the root is an array
  std::string_view text;  ///< the value; at least kPadding readable bytes follow it. Valid until the next call
  bool element = false;   ///< of an array
};

class JsonPieces {
 public:
  /// Bytes that fast parsers may read beyond a value.
  static constexpr std::size_t kPadding = 64;

  /// Throws UserError when the file cannot be opened or is empty.
  explicit JsonPieces(const std::string& path, Progress progress = {});

  /// A text that ends too early or is damaged in its compression from here on ends there, and `cut_off` says so.
  void let_end_early() { may_end_early_ = true; }
  /// Why the text ended before its document did; empty where it did not, or within a root array behind a whole element,
  /// whose closing bracket the format of Chrome's traces lets writers leave out.
  [[nodiscard]] const std::string& cut_off() const { return cut_off_; }
  /// The key of the value or array in which it ended.
  [[nodiscard]] const std::string& cut_inside() const { return key_; }

  /// The next value; false at the end. Throws UserError "file:line: what" for text that is not JSON, ends too early, or
  /// is damaged in its compression.
  bool next(JsonPiece& piece);
  /// Line of the file (from 1) on which the value delivered last begins.
  std::int64_t line();
  /// Text passed so far.
  [[nodiscard]] std::int64_t position() const { return before_buffer_ + static_cast<std::int64_t>(at_); }

 private:
  struct CutOff {
    std::string why;
  };
  bool take(JsonPiece& piece);

  enum class Where : std::uint8_t { start, object, array_in_object, root_array, end };

  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_at_end(std::string_view inside);
  bool refill();
  /// The next character that is not white space, not taken; '\0' at the end of the text.
  char peek();
  /// Position after the value that begins at `at_`.
  std::size_t end_of_value();
  std::string take_key();
  void take_separator(char closing, Where after);
  bool deliver(JsonPiece& piece, bool element);

  std::string path_;
  TextSource source_;
  std::string buffer_;
  std::size_t end_ = 0;  ///< of the text in the buffer; padding follows
  std::size_t at_ = 0, begin_of_value_ = 0;
  std::size_t counted_ = 0;  ///< line breaks before this position are in `lines_`
  std::int64_t before_buffer_ = 0, lines_ = 0;
  std::string key_;
  Where where_ = Where::start;
  std::string cut_off_;
  bool may_end_early_ = false;
  bool key_taken_ = false;
  bool element_delivered_ = false;  ///< of the array at hand: a comma or its end comes next
};

}  // namespace ridgeline::trace
