// Text of a trace file, read in pieces: plain or gzip by its first bytes, whatever its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ridgeline::trace {

/// How much of the file has been taken in, for a progress line: bytes on disk.
using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

class TextSource {
 public:
  /// Throws UserError when the file cannot be opened or is empty.
  explicit TextSource(const std::string& path, Progress progress = {});
  ~TextSource();
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  /// Appends the next piece to `text`, without a byte-order mark; false at the end. What is readable of damaged gzip
  /// data is delivered first.
  bool read(std::string& text);
  /// Why the text ended before the data did; empty when it did not.
  [[nodiscard]] const std::string& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The whole text; throws UserError for damaged data, saying after how many bytes of text.
std::string read_text(const std::string& path);

}  // namespace ridgeline::trace
