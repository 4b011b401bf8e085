#include "sim/trace/text_source.h"

#include <fmt/format.h>

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "sim/units/user_error.h"

namespace ridgeline::trace {

namespace io = boost::iostreams;

namespace {

constexpr std::size_t kPiece = 4 << 20;

/// The file itself, counting what the decompressor takes from it.
class CountedFile {
 public:
  using char_type = char;
  using category = io::source_tag;
  CountedFile(std::shared_ptr<std::ifstream> file, std::int64_t* taken) : file_(std::move(file)), taken_(taken) {}
  std::streamsize read(char* into, std::streamsize count) {
    file_->read(into, count);
    const std::streamsize got = file_->gcount();
    *taken_ += got;
    return got > 0 ? got : -1;
  }

 private:
  std::shared_ptr<std::ifstream> file_;
  std::int64_t* taken_;
};

}  // namespace

struct TextSource::State {
  std::shared_ptr<std::ifstream> file;
  io::filtering_istream stream;
  Progress progress;
  std::int64_t taken = 0, total = 0, text = 0;
  bool begun = false;
  std::string damage;
};

TextSource::TextSource(const std::string& path, Progress progress) : state_(std::make_unique<State>()) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw UserError(fmt::format("{}: is a folder, not a file", path));
  state_->file = std::make_shared<std::ifstream>(path, std::ios::binary);
  if (!*state_->file) throw UserError(fmt::format("{}: no such file, or it cannot be read", path));
  state_->progress = std::move(progress);
  state_->total = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  unsigned char magic[2] = {0, 0};
  state_->file->read(reinterpret_cast<char*>(magic), 2);
  if (state_->file->gcount() == 0) throw UserError(fmt::format("{}: the file is empty", path));
  state_->file->clear();
  state_->file->seekg(0);
  if (magic[0] == 0x1f && magic[1] == 0x8b) state_->stream.push(io::gzip_decompressor());
  state_->stream.push(CountedFile(state_->file, &state_->taken), 1 << 16);
  state_->stream.exceptions(std::ios::badbit);
}

TextSource::~TextSource() = default;

bool TextSource::read(std::string& text) {
  if (!state_->damage.empty()) return false;
  const std::size_t before = text.size();
  text.resize(before + kPiece);
  std::size_t got = 0;
  // Byte by byte after an error would lose what the decompressor holds: small reads keep the loss small.
  constexpr std::size_t kStep = 1 << 12;
  try {
    while (got < kPiece && state_->stream) {
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
  while (source.read(text)) {}
  if (!source.damage().empty()) throw UserError(fmt::format("{}: {}", path, source.damage()));
  return text;
}

}  // namespace ridgeline::trace
