#include "sim/study/gzip_lines.h"

#include <fmt/format.h>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <filesystem>
#include <fstream>

#include "sim/units/user_error.h"

namespace ridgeline {

void for_each_line(const std::string& path, const std::function<void(std::string_view)>& line) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UserError(fmt::format("{}: is a folder, not a file", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("{}: no such file, or it cannot be read", path));
  const bool gzip = file.get() == 0x1f && file.get() == 0x8b;
  file.clear();
  file.seekg(0);
  boost::iostreams::filtering_istream in;
  if (gzip) in.push(boost::iostreams::gzip_decompressor());
  in.push(file);
  in.exceptions(std::ios::badbit);
  try {
    std::string text;
    while (std::getline(in, text))
      if (!text.empty()) line(text);
  } catch (const boost::iostreams::gzip_error& e) {
    throw UserError(fmt::format("{}: the gzip data are damaged or cut off ({})", path, e.what()));
  } catch (const std::ios_base::failure& e) {
    throw UserError(fmt::format("{}: cannot be read to its end ({})", path, e.what()));
  }
}

}  // namespace ridgeline
