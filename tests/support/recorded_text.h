// Records of an op trace in words, to compare whole steps with what they should be.
//
// A line says what the host does once ("linear", "pointwise x20": twenty times) and what this starts, in its order:
// "+120" a storage of 120 bytes is made, "-120" one is given back, "mm 5x8x12 nt fp32 (240 384 > 160)" an operation
// that reads two operands of these bytes and writes one, "sync" the host waits for the GPU. What starts nothing shares
// lines: "view; transpose". Letters behind a new storage's bytes say what it is for: w weights, g gradients, s states
// of the optimizer, i inputs, t temporaries, k workspaces, none activations. "@1" is stream 1, "wait2@1" makes it wait
// for event 2. Storages that have names are called by them. "[backward layers.0]": pass and module of what follows.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

/// What shape_of leaves out.
struct FurtherWords {
  std::string operator()(const Pointwise& op) const {
    constexpr const char* kWalks[] = {"", " rows", " broadcast", " strided", " transposed"};
    return kWalks[static_cast<std::size_t>(op.walk)];
  }
  std::string operator()(const Copy& op) const {
    constexpr const char* kKinds[] = {"",          " permuted",        " transposed",
                                      " joined",   " joined strided",  " to gpu",
                                      " from gpu", " pageable to gpu", " pageable from gpu"};
    return (op.parts > 1 ? fmt::format(" x{}", op.parts) : "") + kKinds[static_cast<std::size_t>(op.kind)];
  }
  std::string operator()(const Norm& op) const { return op.bias || op.rms ? "" : " without bias"; }
  std::string operator()(const Reduction& op) const {
    constexpr const char* kKinds[] = {" rows", " cols", "", "", "", " rows", " cols"};
    return kKinds[static_cast<std::size_t>(op.kind)];
  }
  std::string operator()(const Embedding& op) const { return op.backward && op.accumulates ? " added" : ""; }
  std::string operator()(const Attention& op) const {
    std::string words;
    if (op.kv_heads != op.heads) words += fmt::format(" kv{}", op.kv_heads);
    if (op.seq_k != op.seq_q) words += fmt::format(" keys{}", op.seq_k);
    return words + (op.dropout ? " dropout" : "") + (op.head_major ? " head-major" : "");
  }
  std::string operator()(const FusedKernel& op) const {
    return (op.arithmetic > 0 ? fmt::format(" {} instructions", op.arithmetic) : "") + (op.gathers ? " gathers" : "") +
           (op.column_results > 0 ? fmt::format(" {} sums", op.column_results) : "");
  }
  std::string operator()(const MultiTensor& op) const { return op.scalar_per_tensor ? " scalars" : ""; }
  std::string operator()(const Sort& op) const { return op.key_bits > 0 ? fmt::format(" {} bits", op.key_bits) : ""; }
  std::string operator()(const Collective& op) const { return " " + std::string(name_of(op.group)); }
  std::string operator()(const UnknownOp& op) const { return fmt::format(" {} read", op.read_bytes); }
  template <typename Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

inline std::string words_of(const Op& op) { return name_of(op) + " " + shape_of(op) + std::visit(FurtherWords{}, op); }

/// What the host does once, in words, each of what it starts one.
struct RecordedLine {
  std::string place;  ///< pass and module of the first operation; empty: as before
  std::vector<std::string> words;
  bool starts_something = false;
  bool operator==(const RecordedLine& other) const { return words == other.words; }
};

/// Lines of the same beginning ("+ ") at most 118 characters wide; hosts that start nothing share them.
class LineWriter {
 public:
  void write(const RecordedLine& line, const std::string& beginning = "") {
    if (line.starts_something || beginning != beginning_) end();
    beginning_ = beginning;
    for (std::size_t i = 0; i < line.words.size(); ++i) add(line.words[i], i == 0 && !row_.empty() ? "; " : " ");
    if (line.starts_something) end();
  }
  void head(const std::string& place) {
    if (place.empty() || place == place_) return;
    end();
    text_ += "[" + (place_ = place) + "]\n";
  }
  [[nodiscard]] std::string text() {
    end();
    return text_;
  }

 private:
  void add(const std::string& words, const char* between) {
    static constexpr std::size_t kWidth = 116;
    if (row_.empty()) {
      row_ = beginning_ + words;
      return;
    }
    const std::size_t row_begin = row_.rfind('\n') == row_.npos ? 0 : row_.rfind('\n') + 1;
    if (row_.size() - row_begin + words.size() > kWidth) row_ += (*between == ';' ? ";\n    " : "\n    ") + words;
    else row_ += between + words;
  }
  void end() {
    if (!row_.empty()) text_ += row_ + "\n";
    row_.clear();
  }

  std::string text_, row_, beginning_, place_;
};

class RecordedText {
 public:
  explicit RecordedText(const OpTrace& trace) : trace_(trace) {}

  /// From here on a storage is called so.
  RecordedText& call(StorageId storage, std::string name) {
    names_[storage] = std::move(name);
    return *this;
  }
  /// Storages without a name are called a, b, c … as they are made.
  RecordedText& letters() {
    lettered_ = true;
    return *this;
  }

  [[nodiscard]] std::vector<RecordedLine> lines(std::uint32_t begin, std::uint32_t end) {
    std::vector<RecordedLine> lines;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Record& record = trace_.records[i];
      const bool host = record.kind == Record::Kind::host;
      if (host || lines.empty()) lines.emplace_back().place = place_of(i, end);
      if (!host) lines.back().starts_something = true;
      lines.back().words.push_back(host ? std::string(name_of(record.host_class)) +
                                              (record.index > 1 ? fmt::format(" x{}", record.index) : "")
                                        : words_of(record));
    }
    return lines;
  }
  [[nodiscard]] std::string text(std::uint32_t begin, std::uint32_t end) {
    LineWriter writer;
    for (const RecordedLine& line : lines(begin, end)) {
      writer.head(line.place);
      writer.write(line);
    }
    return writer.text();
  }
  [[nodiscard]] std::string text(const StepRange& range) { return text(range.begin, range.end); }
  [[nodiscard]] std::string last_step() { return text(trace_.steps.back()); }

 private:
  static std::string on(std::uint8_t stream) { return stream == 0 ? "" : fmt::format("@{}", stream); }
  std::string name_of_storage(StorageId storage) {
    const auto found = names_.find(storage);
    return found != names_.end() ? found->second : std::to_string(trace_.storages[storage].bytes);
  }
  std::string words_of(const Record& record) {
    switch (record.kind) {
      case Record::Kind::allocate: {
        const Storage& made = trace_.storages[record.index];
        constexpr const char* kPurposes[] = {"w", "g", "s", "", "t", "k", "i"};
        std::string name;
        if (lettered_ && !names_.contains(record.index)) names_[record.index] = std::string(1, next_letter_++);
        if (names_.contains(record.index)) name = names_[record.index] + "=";
        return fmt::format("+{}{}{}{}", name, made.bytes, kPurposes[static_cast<std::size_t>(made.category)],
                           on(made.stream));
      }
      case Record::Kind::free: return "-" + name_of_storage(record.index);
      case Record::Kind::op: return words_of(trace_.calls[record.index]);
      case Record::Kind::wait_for_gpu: return "sync";
      case Record::Kind::record_event: return fmt::format("event{}{}", number_of(record.index), on(record.stream));
      case Record::Kind::wait_event: return fmt::format("wait{}@{}", number_of(record.index), record.stream);
      case Record::Kind::host_waits_for_event: return fmt::format("host-waits{}", number_of(record.index));
      case Record::Kind::host: break;
    }
    return "?";
  }
  /// Events are numbered as they come up.
  std::size_t number_of(std::uint32_t event) { return events_.emplace(event, events_.size()).first->second; }
  std::string words_of(const Call& call) {
    std::string text = testing_support::words_of(trace_.ops[call.op]) + on(call.stream) + " (";
    for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
      const Operand& operand = trace_.operands[call.operands_begin + k];
      if (k == call.inputs) text += k > 0 ? " > " : "> ";
      else if (k > 0) text += " ";
      const auto found = names_.find(operand.storage);
      if (found == names_.end()) text += std::to_string(operand.bytes);
      else if (operand.bytes == trace_.storages[operand.storage].bytes) text += found->second;
      else text += fmt::format("{}/{}", operand.bytes, found->second);
    }
    return text + ")";
  }
  /// Of the next operation before the host does something else.
  std::string place_of(std::uint32_t from, std::uint32_t end) const {
    constexpr const char* kPhases[] = {"setup", "forward", "backward", "clipping", "optimizer", "other"};
    for (std::uint32_t i = from; i < end; ++i) {
      if (i > from && trace_.records[i].kind == Record::Kind::host) return {};
      if (trace_.records[i].kind != Record::Kind::op) continue;
      const Call& call = trace_.calls[trace_.records[i].index];
      std::string path;
      for (std::uint16_t at = call.module; at != 0; at = trace_.modules[at - 1U].parent)
        path = trace_.modules[at - 1U].name + (path.empty() ? "" : ".") + path;
      return std::string(kPhases[static_cast<std::size_t>(call.phase)]) + (path.empty() ? "" : " ") + path;
    }
    return {};
  }

  const OpTrace& trace_;
  std::map<StorageId, std::string> names_;
  std::map<std::uint32_t, std::size_t> events_;
  bool lettered_ = false;
  char next_letter_ = 'a';
};

/// The last step in words.
inline std::string last_step_in_words(const OpTrace& trace) { return RecordedText(trace).last_step(); }

/// Lines of the last step whose host's name has one of these words in it, and those that no host begins.
inline std::string last_step_about(const OpTrace& trace, const std::vector<std::string>& about) {
  LineWriter writer;
  for (const RecordedLine& line : RecordedText(trace).lines(trace.steps.back().begin, trace.steps.back().end))
    if (std::ranges::any_of(
            about, [&](const std::string& word) { return line.words.front().find(word) != line.words.front().npos; }))
      writer.write(line);
  return writer.text();
}

/// What the last step of `changed` does otherwise than that of `plain`: "- " what the host no longer does so, "+ " what
/// it does.
inline std::string changes_of_last_step(const OpTrace& plain, const OpTrace& changed) {
  const auto lines_of = [](const OpTrace& trace) {
    return RecordedText(trace).lines(trace.steps.back().begin, trace.steps.back().end);
  };
  const std::vector<RecordedLine> a = lines_of(plain), b = lines_of(changed);
  // longest[i][j]: lines that a from i on and b from j on have in common, in their order.
  std::vector<std::vector<int>> longest(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      longest[i][j] = a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
  LineWriter writer;
  std::string place;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      if (!b[j].place.empty()) place = b[j].place;
      ++i, ++j;
      continue;
    }
    const bool gone = j == b.size() || (i < a.size() && longest[i + 1][j] >= longest[i][j + 1]);
    const RecordedLine& line = gone ? a[i++] : b[j++];
    if (!line.place.empty()) place = line.place;
    writer.head(place);
    if (gone) writer.write({.place = {}, .words = {line.words.front()}}, "- ");
    else writer.write(line, "+ ");
  }
  return writer.text();
}

}  // namespace ridgeline::testing_support
