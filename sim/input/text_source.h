// Text of a file, read in pieces: plain or gzip by its first bytes, whatever its name.
//
// A gzip file of some megabytes can hold terabytes of blanks. What people record shrinks to a twentieth at most:
// one whose text is more than kMostExpansion times what was taken in is refused once the text is larger than kFreeText.
// Pipes are read as files are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ridgeline {

/// How much of the file has been taken in, for a progress line: bytes on disk; `total` is 0 for a pipe.
using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

inline constexpr std::string_view kGzipBegin = "\x1f\x8b";
inline constexpr std::int64_t kMostExpansion = 200;
inline constexpr std::int64_t kFreeText = std::int64_t{64} << 20;  ///< bytes

enum class Empty : std::uint8_t { refused, read };

class TextSource {
 public:
  /// Throws UserError when the file cannot be opened, or is empty where that is refused.
  explicit TextSource(const std::string& path, Progress progress = {}, Empty empty = Empty::refused);
  ~TextSource();
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  /// Appends the next piece to `text`, without a byte-order mark; false at the end. What is readable of damaged gzip
  /// data is delivered first. Throws UserError for one that expands beyond reason.
  bool read(std::string& text);
  /// Why the text ended before the data did; empty when it did not.
  [[nodiscard]] const std::string& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline constexpr std::size_t kMostText = std::size_t{512} << 20;  ///< bytes of a file that is held as a whole

/// The whole text; throws UserError for what TextSource refuses, for more than kMostText (also of a device or stream
/// that never ends) and for damaged data, saying after how many bytes of text.
std::string read_text(const std::string& path);

}  // namespace ridgeline
