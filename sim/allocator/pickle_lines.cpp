#include "sim/allocator/pickle_lines.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace ridgeline {
namespace {

template <typename Number>
bool parses(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

PickleValue number_of(std::string_view line) {
  if (line.ends_with('L')) line.remove_suffix(1);
  std::int64_t whole = 0;
  double nearest = 0.0;
  if (parses(line, whole)) return PickleValue::integer(whole);
  if (parses(line, nearest)) return {nearest};  // what 64 bits do not hold
  throw std::invalid_argument("a number has letters");
}

void add_utf8(std::string& out, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) return add(0xc0 | point >> 6), add(0x80 | (point & 0x3f));
  if (point < 0x10000) add(0xe0 | point >> 12);
  else add(0xf0 | point >> 18), add(0x80 | (point >> 12 & 0x3f));
  add(0x80 | (point >> 6 & 0x3f)), add(0x80 | (point & 0x3f));
}

/// A letter behind a backslash and the length of the hexadecimal number behind it.
constexpr std::array<std::pair<char, std::size_t>, 3> kEscapes{{{'u', 4}, {'U', 8}, {'x', 2}}};

/// Escapes of a text that hold a code point; others of Python's strings where `all`.
std::string unescaped(std::string_view line, bool all) {
  constexpr std::string_view kLetters = "ntr0\\'\"", kMeant{"\n\t\r\0\\'\"", 7};
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      if (all) out += line[i];
      else add_utf8(out, static_cast<unsigned char>(line[i]));  // raw-unicode-escape is Latin-1
      continue;
    }
    const char letter = line[i + 1];
    std::size_t digits = 0;
    for (const auto& [known, length] : kEscapes)
      if (letter == known && (all || known != 'x')) digits = length;
    std::uint32_t point = 0;
    const std::string_view number = line.substr(i + 2, digits);
    if (digits > 0 && number.size() == digits &&
        std::from_chars(number.data(), number.data() + digits, point, 16).ptr == number.data() + digits &&
        point < 0x110000) {
      add_utf8(out, point);
      i += 1 + digits;
    } else if (const std::size_t known = kLetters.find(letter); all && known != std::string_view::npos) {
      out += kMeant[known];
      ++i;
    } else {
      out += line[i];
    }
  }
  return out;
}

}  // namespace

PickleValue pickled_line(unsigned char opcode, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (opcode == 'I' && (line == "00" || line == "01")) return PickleValue::boolean(line == "01");
  if (opcode == 'V') return PickleValue::text(unescaped(line, false));
  if (opcode == 'S') {
    if (line.size() < 2 || (line.front() != '\'' && line.front() != '"') || line.back() != line.front())
      throw std::invalid_argument("a text without its quotes");
    return PickleValue::text(unescaped(line.substr(1, line.size() - 2), true));
  }
  if (opcode != 'F') return number_of(line);
  double number = 0.0;
  if (!parses(line, number)) throw std::invalid_argument("a number has letters");
  return {number};
}

}  // namespace ridgeline
