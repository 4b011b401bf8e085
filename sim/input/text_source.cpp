#include "sim/input/text_source.h"

#include <fmt/format.h>

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "sim/units/budget.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace ridgeline {

namespace io = boost::iostreams;

namespace {

constexpr std::size_t kPiece = 4 << 20;

/// The file itself, counting what the decompressor takes from it. Its first bytes were read before: a pipe has no way
/// back to them.
class CountedFile {
 public:
  using char_type = char;
  using category = io::source_tag;
  CountedFile(std::shared_ptr<std::ifstream> file, std::string first, std::int64_t* taken)
      : file_(std::move(file)), first_(std::move(first)), taken_(taken) {}
  std::streamsize read(char* into, std::streamsize count) {
    const auto begun = static_cast<std::streamsize>(first_.copy(into, static_cast<std::size_t>(count)));
    first_.erase(0, static_cast<std::size_t>(begun));
    file_->read(into + begun, count - begun);
    const std::streamsize got = begun + file_->gcount();
    *taken_ += got;
    return got > 0 ? got : -1;
  }

 private:
  std::shared_ptr<std::ifstream> file_;
  std::string first_;
  std::int64_t* taken_;
};

}  // namespace

struct TextSource::State {
  std::string path;
  std::shared_ptr<std::ifstream> file;
  io::filtering_istream stream;
  Progress progress;
  std::int64_t taken = 0, total = 0, text = 0;
  bool compressed = false, begun = false;
  std::string damage;
};

TextSource::TextSource(const std::string& path, Progress progress, Empty empty) : state_(std::make_unique<State>()) {
  check_readable(path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw UserError(fmt::format("{}: is a folder, not a file", path));
  state_->path = path;
  state_->file = std::make_shared<std::ifstream>(path, std::ios::binary);
  if (!*state_->file) throw UserError(fmt::format("{}: no such file, or it cannot be read", path));
  state_->progress = std::move(progress);
  const auto size = std::filesystem::file_size(path, error);
  state_->total = error ? 0 : static_cast<std::int64_t>(size);
  std::string first(kGzipBegin.size(), '\0');
  state_->file->read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(state_->file->gcount()));
  if (first.empty() && empty == Empty::refused) throw UserError(fmt::format("{}: the file is empty", path));
  state_->compressed = first == kGzipBegin;
  if (state_->compressed) state_->stream.push(io::gzip_decompressor());
  state_->stream.push(CountedFile(state_->file, std::move(first), &state_->taken), 1 << 16);
  state_->stream.exceptions(std::ios::badbit);
}

TextSource::~TextSource() = default;

bool TextSource::read(std::string& text) {
  keep_budget("reading a file");
  if (!state_->damage.empty()) return false;
  const std::size_t before = text.size();
  std::size_t got = 0;
  // Byte by byte after an error would lose what the decompressor holds: small reads keep the loss small.
  constexpr std::size_t kStep = 1 << 12;
  try {
    while (got < kPiece && state_->stream) {
      text.resize(before + got + kStep);
      state_->stream.read(text.data() + before + got, static_cast<std::streamsize>(kStep));
      got += static_cast<std::size_t>(state_->stream.gcount());
    }
  } catch (const std::exception&) {
    got += static_cast<std::size_t>(std::max<std::streamsize>(0, state_->stream.gcount()));
    state_->damage = fmt::format("the compressed data is damaged or ends too early, after {} bytes of text",
                                 state_->text + static_cast<std::int64_t>(got));
  }
  text.resize(before + got);
  state_->text += static_cast<std::int64_t>(got);
  if (state_->compressed && state_->text > kFreeText && state_->text / kMostExpansion > state_->taken)
    throw UserError(fmt::format("{}: {} bytes of gzip expand to more than {} MiB; no recording shrinks that much",
                                state_->path, state_->taken, kFreeText >> 20));
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (!std::exchange(state_->begun, true) && std::string_view(text).substr(before).starts_with(kByteOrderMark))
    text.erase(before, kByteOrderMark.size());
  if (state_->progress) state_->progress(state_->taken, state_->total);
  return got > 0;
}

const std::string& TextSource::damage() const { return state_->damage; }

std::string read_text(const std::string& path) {
  TextSource source(path);
  std::string text;
  while (source.read(text))
    if (text.size() > kMostText)
      throw UserError(
          fmt::format("{}: more than {} MiB of text, the most that is read as a whole", path, kMostText >> 20));
  if (!source.damage().empty()) throw UserError(fmt::format("{}: {}", path, source.damage()));
  return text;
}

}  // namespace ridgeline
