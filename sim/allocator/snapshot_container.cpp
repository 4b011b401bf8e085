#include "sim/allocator/snapshot_container.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw UserError(fmt::format("{}: {}", source, what));
}

/// Little-endian; 0 beyond the end.
std::uint64_t number_at(std::string_view bytes, std::size_t at, unsigned count) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count && at + i < bytes.size(); ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

/// The file of an archive whose name ends in data.pkl: APPNOTE.TXT of the zip format, entries that are not compressed.
std::string data_of_archive(std::string_view bytes, const std::string& source) {
  constexpr std::string_view kEnd = "PK\x05\x06", kEntry = "PK\x01\x02", kName = "data.pkl";
  const std::size_t end = bytes.rfind(kEnd);
  if (end == std::string_view::npos) fail(source, "the zip archive ends too early");
  std::size_t at = number_at(bytes, end + 16, 4);
  while (at < bytes.size() && bytes.substr(at).starts_with(kEntry)) {
    const std::size_t name = number_at(bytes, at + 28, 2), extra = number_at(bytes, at + 30, 2),
                      comment = number_at(bytes, at + 32, 2);
    if (bytes.substr(std::min(at + 46, bytes.size()), name).ends_with(kName)) {
      if (number_at(bytes, at + 10, 2) != 0) fail(source, "its data.pkl is compressed: unpack the archive");
      const std::size_t size = number_at(bytes, at + 20, 4), local = number_at(bytes, at + 42, 4);
      const std::size_t begin = local + 30 + number_at(bytes, local + 26, 2) + number_at(bytes, local + 28, 2);
      if (begin > bytes.size() || size > bytes.size() - begin) fail(source, "the zip archive ends too early");
      return std::string(bytes.substr(begin, size));
    }
    at += 46 + name + extra + comment;
  }
  fail(source, "the zip archive has no data.pkl, as files of torch.save have");
}

std::string decoded_base64(std::string_view text, const std::string& source) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int, 256> value{};
  value.fill(-1);
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    value.at(static_cast<unsigned char>(kLetters[i])) = static_cast<int>(i);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int six = value.at(static_cast<unsigned char>(c));
    if (six < 0) fail(source, "the snapshot in the page is no base64");
    bits = bits << 6 | static_cast<std::uint32_t>(six);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  return out;
}

}  // namespace

std::string unpacked_snapshot(std::string bytes, const std::string& source) {
  if (bytes.starts_with("PK\x03\x04")) return data_of_archive(bytes, source);
  constexpr std::string_view kKey = "\"base64\": \"";
  if (!bytes.starts_with('<')) return bytes;
  const std::size_t key = bytes.find(kKey);
  if (key == std::string::npos) fail(source, "the page holds no snapshot (\"base64\")");
  const std::size_t begin = key + kKey.size(), end = bytes.find('"', begin);
  if (end == std::string::npos) fail(source, "the page ends inside the snapshot");
  return decoded_base64(std::string_view(bytes).substr(begin, end - begin), source);
}

}  // namespace ridgeline
