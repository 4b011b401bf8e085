#include "sim/input/lines.h"

#include <fmt/format.h>

#include <istream>

#include "sim/input/text_source.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

[[noreturn]] void refuse_line(const std::string& name, std::size_t number) {
  throw UserError(fmt::format("{}:{}: a line of more than {} MiB", name, number, kLongestLine >> 20));
}

}  // namespace

void for_each_line(const std::string& path, const std::function<void(std::string_view)>& line) {
  TextSource source(path, {}, Empty::read);
  std::string text;
  std::size_t number = 0;
  while (source.read(text)) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      ++number;
      if (end > begin) line(std::string_view(text).substr(begin, end - begin));
    }
    text.erase(0, begin);
    if (text.size() > kLongestLine) refuse_line(path, number + 1);
  }
  if (!source.damage().empty()) throw UserError(fmt::format("{}: {}", path, source.damage()));
  if (!text.empty()) line(text);
}

void for_each_line(std::istream& in, const std::string& name, const std::function<void(std::string_view)>& line) {
  using Traits = std::istream::traits_type;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string text;
  std::size_t number = 1;
  for (auto c = in.rdbuf()->sbumpc(); c != Traits::eof(); c = in.rdbuf()->sbumpc()) {
    if (c != '\n') {
      text += Traits::to_char_type(c);
      if (text.size() > kLongestLine) refuse_line(name, number);
      if (number == 1 && text == kGzipBegin)
        throw UserError(fmt::format("{}: gzip is read from files only; expected plain text", name));
      if (number == 1 && text == kByteOrderMark) text.clear();
      continue;
    }
    if (!text.empty()) line(text);
    text.clear();
    ++number;
  }
  if (!text.empty()) line(text);
}

}  // namespace ridgeline
