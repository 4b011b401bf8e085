#include "tests/fuzz/token_mutator.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ridgeline {
namespace {

constexpr std::size_t kMostKnown = 4096, kLongestKnown = 48;

/// Numbers and words that readers may forget to think of.
constexpr std::array<std::string_view, 44> kBorders{"0",
                                                    "1",
                                                    "-1",
                                                    "2",
                                                    "7",
                                                    "65536",
                                                    "2147483647",
                                                    "2147483648",
                                                    "-2147483648",
                                                    "4294967296",
                                                    "1e18",
                                                    "1e19",
                                                    "1e308",
                                                    "-1e308",
                                                    "1e-308",
                                                    "1e999",
                                                    "0.5",
                                                    "0.1",
                                                    "1e-9",
                                                    "100 %",
                                                    "0 GiB",
                                                    "1e30 GiB",
                                                    "1 TB/s",
                                                    "9 ns",
                                                    "1e9 GHz",
                                                    "nan",
                                                    "inf",
                                                    "null",
                                                    "~",
                                                    "true",
                                                    "false",
                                                    "\"\"",
                                                    "[]",
                                                    "{}",
                                                    "[0]",
                                                    "{a: 1}",
                                                    "[[]]",
                                                    "\"\\u0000\"",
                                                    "\"\\ud800\"",
                                                    "&a",
                                                    "*a",
                                                    "!!int",
                                                    "9223372036854775807",
                                                    "-9223372036854775808"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '+' || (c & 0x80) != 0;
}

std::size_t end_of_token(std::string_view text, std::size_t at) {
  const char first = text[at];
  std::size_t end = at + 1;
  if (first == '"' || first == '\'') {
    while (end < text.size() && text[end] != first && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  if (first == ' ') {
    while (end < text.size() && text[end] == ' ') ++end;
  } else if (is_word(first)) {
    while (end < text.size() && is_word(text[end])) ++end;
  }
  return end;
}

std::size_t below(std::mt19937_64& random, std::size_t n) {
  return n == 0 ? 0 : static_cast<std::size_t>(random() % n);
}

/// The number written otherwise: a neighbour, another sign, ten times as much.
std::string near(const std::string& number, std::mt19937_64& random) {
  switch (random() % 5) {
    case 0: return "-" + number;
    case 1: return number + "0";
    case 2: return number + "e9";
    case 3: return "0." + number;
    default: {
      std::string other = number;
      other[below(random, other.size())] = static_cast<char>('0' + random() % 10);
      return other;
    }
  }
}

}  // namespace

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_token(text, at);
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

void TokenMutator::learn(const std::vector<std::string_view>& tokens, std::mt19937_64& random) {
  for (int i = 0; i < 4 && !tokens.empty(); ++i) {
    const std::string_view token = tokens[below(random, tokens.size())];
    if (token.size() > kLongestKnown) continue;
    if (known_.size() < kMostKnown) known_.emplace_back(token);
    else known_[below(random, kMostKnown)] = token;
  }
}

void TokenMutator::change_once(std::vector<std::string_view>& tokens, std::mt19937_64& random) {
  const std::size_t size = tokens.size(), at = below(random, size),
                    length = std::min(1 + below(random, 8), size - std::min(at, size));
  const auto from = [&](std::size_t place) { return tokens.begin() + static_cast<std::ptrdiff_t>(place); };
  const auto other = [&] {
    return known_.empty() || random() % 3 == 0 ? kBorders[below(random, kBorders.size())]
                                               : std::string_view(known_[below(random, known_.size())]);
  };
  if (tokens.empty()) {
    tokens.push_back(other());
    return;
  }
  switch (random() % 10) {
    case 0:
    case 1: tokens[at] = other(); break;
    case 2: tokens.insert(from(at), other()); break;
    case 3: tokens.erase(from(at), from(at + length)); break;
    case 4: {
      const std::vector<std::string_view> part(from(at), from(at + length));
      tokens.insert(from(below(random, size + 1)), part.begin(), part.end());
      break;
    }
    case 5: std::swap(tokens[at], tokens[below(random, size)]); break;
    case 6: {  // the next number
      const auto number = std::find_if(
          from(at), tokens.end(), [](std::string_view t) { return std::isdigit(static_cast<unsigned char>(t[0])); });
      if (number != tokens.end()) *number = made_.emplace_back(near(std::string(*number), random));
      break;
    }
    case 7: {  // a line once more, or not at all
      const auto begin = std::find(from(at), tokens.end(), "\n"),
                 end = begin == tokens.end() ? begin : std::find(begin + 1, tokens.end(), "\n");
      const std::vector<std::string_view> line(begin, end);
      if (random() % 2 == 0) tokens.erase(begin, end);
      else tokens.insert(begin, line.begin(), line.end());
      break;
    }
    case 8: {
      static constexpr std::array<std::pair<const char*, const char*>, 4> kAround{
          {{"[", "]"}, {"{", "}"}, {"(", ")"}, {"\"", "\""}}};
      const auto& [open, close] = kAround[below(random, kAround.size())];
      tokens.insert(from(at + length), close);
      tokens.insert(from(at), open);
      break;
    }
    default: {
      std::string& one = made_.emplace_back(tokens[at]);
      one[below(random, one.size())] = static_cast<char>(random());
      tokens[at] = one;
      break;
    }
  }
}

std::string TokenMutator::changed(std::string_view text, std::mt19937_64& random) {
  const std::vector<std::string_view> seen = tokens_of(text);
  learn(seen, random);
  std::vector<std::string_view> tokens = seen;
  for (std::size_t left = 1 + below(random, 5); left > 0; --left) change_once(tokens, random);
  std::string result;
  result.reserve(2 * text.size());
  for (const std::string_view token : tokens) result += token;
  made_.clear();
  return result;
}

}  // namespace ridgeline
