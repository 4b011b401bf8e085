// Plain data written as a pickle of protocol 2, value by value: for files of so many events that a tree of values would
// take longer than all the rest. write_pickle() writes trees with it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sim/units/text_buffer.h"

namespace ridgeline {

static_assert(std::endian::native == std::endian::little);

class PickleStream {
 public:
  /// A value's place in the memo; Python reads it again from there.
  using Place = std::uint32_t;
  static constexpr Place kNone = std::numeric_limits<Place>::max();

  /// A text that comes often: a static string, found in the memo without a look at it. Of one stream.
  struct Word {
    const char* text = "";
    Place place = kNone;
  };

  explicit PickleStream(std::size_t expected_bytes = 0) : out_(expected_bytes) { out_.add("\x80\x02"); }
  /// The whole pickle; call it last.
  [[nodiscard]] std::string finish() && {
    out_.add('.');
    return std::move(out_).take();
  }

  void none() { out_.add('N'); }
  void boolean(bool truth) { out_.add(truth ? '\x88' : '\x89'); }
  void integer(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    if (number >= 0 && number < 0x100) put('K', bits, 1);
    else if (number == static_cast<std::int32_t>(number)) put('J', bits, 4);
    else out_.add('\x8a'), put('\x08', bits, 8);
  }
  void real(double number);
  /// Equal texts are written once. The text's place.
  Place text(std::string_view text);
  void word(Word& word) {
    if (word.place == kNone) word.place = text(word.text);
    else recall(word.place);
  }

  // Of a list and a dict the opening, then, where it is not empty, a mark, what it holds (keys and values in turn), and
  // what closes it. Of a tuple the mark stands for the opening.
  void open_list() { out_.add(']'); }
  void open_dict() { out_.add('}'); }
  void mark() { out_.add('('); }
  void close_list() { out_.add('e'); }
  void close_dict() { out_.add('u'); }
  void close_tuple() { out_.add('t'); }

  /// Of what was written or opened last.
  Place remember();
  void recall(Place place) {
    if (place < 0x100) put('h', place, 1);
    else put('j', place, 4);
  }

 private:
  /// `count` bytes of `value`, at most eight, little-endian.
  void put(char opcode, std::uint64_t value, unsigned count) {
    char* at = out_.room(9);
    at[0] = opcode;
    std::memcpy(at + 1, &value, 8);
    out_.wrote(at + 1 + count);
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  TextBuffer out_;
  std::unordered_map<std::string, Place, Hash, std::equal_to<>> texts_;
  Place remembered_ = 0;
};

}  // namespace ridgeline
