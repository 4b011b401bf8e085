#include "sim/network/read_link_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace ridgeline {
namespace {

using config::Value;

constexpr int kMostSeats = 64;                           // of one machine
constexpr std::size_t kMostText = std::size_t{1} << 22;  // bytes of a file, more than a matrix of kMostSeats
constexpr int kNvlink = -2, kSelf = -1;                  // besides the levels of PcieLevel

class TreeReader {
 public:
  std::vector<GpuSeat> read(const Value& list) {
    if (!list.is_list())
      list.fail("expected a list of parts, such as [{socket: [{switch: [0, 1]}]}, {socket: [2, 3]}]");
    for (const Value& part : list.list()) add(part, {}, Depth::machine);
    const auto missing = std::find(seen_.begin(), seen_.end(), false);
    if (missing != seen_.end())
      list.fail(fmt::format("GPU {} is missing; a tree of {} GPUs names 0 to {} once each", missing - seen_.begin(),
                            seen_.size(), seen_.size() - 1));
    if (seats_.empty()) list.fail("no GPU in it");
    return std::move(seats_);
  }

 private:
  enum class Depth : std::uint8_t { machine, socket, root, outer_switch, inner_switch };

  void add(const Value& part, GpuSeat at, Depth depth) {
    if (!part.is_mapping()) return add_gpu(part, at, depth);
    if (part.node().entries.size() != 1) part.fail("expected one of socket, root or switch, with what hangs from it");
    const std::string& key = part.node().entries.front().key;
    const Value below = part[key];
    Depth next = Depth::socket;
    if (key == "root") next = Depth::root;
    else if (key == "switch") next = depth < Depth::outer_switch ? Depth::outer_switch : Depth::inner_switch;
    else if (key != "socket")
      part.fail(fmt::format("'{}' is no part of a machine; there are socket, root and switch", key));
    if (next <= depth)
      part.fail(depth == Depth::inner_switch ? "a third switch behind each other; two can be told apart"
                                             : fmt::format("a {} inside what hangs from it", key));
    open(at, depth, next);
    if (!below.is_list()) below.fail("expected a list of GPUs and parts, such as [0, 1]");
    for (const Value& one : below.list()) add(one, at, next);
  }

  /// Numbers for the part, and for those above it that nothing names.
  void open(GpuSeat& at, Depth from, Depth to) {
    if (from < Depth::socket) at.socket = to == Depth::socket ? ++next_ : 0;
    if (from < Depth::root && to >= Depth::root) at.root = ++next_;
    if (from < Depth::outer_switch && to >= Depth::outer_switch) at.bridge = at.port = ++next_;
    if (to == Depth::inner_switch) at.port = ++next_;
  }

  void add_gpu(const Value& part, GpuSeat at, Depth depth) {
    const auto gpu = static_cast<std::size_t>(part.integer({0, kMostSeats - 1}));
    if (depth < Depth::root) at.root = ++next_;
    if (depth < Depth::outer_switch) at.bridge = at.port = ++next_;
    if (gpu >= seats_.size()) seats_.resize(gpu + 1), seen_.resize(gpu + 1);
    if (seen_[gpu]) part.fail(fmt::format("GPU {} stands in the tree twice", gpu));
    seen_[gpu] = true;
    seats_[gpu] = at;
  }

  std::vector<GpuSeat> seats_;
  std::vector<bool> seen_;
  int next_ = 0;
};

std::vector<std::string> words_of(const std::string& line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {  // nvidia-smi underlines its heading
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    plain += line[i];
  }
  std::istringstream in(plain);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::optional<int> number_after(std::string_view word, std::string_view start) {
  if (!word.starts_with(start) || word.size() == start.size()) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(word.data() + start.size(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < 0) return std::nullopt;
  return number;
}

struct Relation {
  int level = kSelf;
  int nvlinks = 0;
};

std::optional<Relation> relation_of(const std::string& word) {
  constexpr std::array<std::string_view, 5> kLevelWords{"PIX", "PXB", "PHB", "NODE", "SYS"};
  if (word == "X") return Relation{};
  if (const auto links = number_after(word, "NV"); links && *links > 0) return Relation{kNvlink, *links};
  for (std::size_t level = 0; level < kLevelWords.size(); ++level)
    if (word == kLevelWords[level]) return Relation{static_cast<int>(level), 0};
  return std::nullopt;
}

using Matrix = std::vector<std::vector<Relation>>;

/// The rows of the GPUs; those of NICs, and the legend, are not read.
Matrix matrix_of(const Value& value, const std::vector<std::string>& lines) {
  std::vector<std::size_t> columns;  // of the GPUs, in a row behind its name
  Matrix matrix;
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const std::vector<std::string> words = words_of(lines[number]);
    if (words.empty() || !number_after(words[0], "GPU")) continue;
    if (columns.empty()) {
      for (std::size_t i = 0; i < words.size(); ++i)
        if (number_after(words[i], "GPU") == static_cast<int>(columns.size())) columns.push_back(i + 1);
      continue;
    }
    if (number_after(words[0], "GPU") != static_cast<int>(matrix.size())) continue;
    if (columns.size() > kMostSeats)
      value.fail(fmt::format("{} GPUs of one machine, expected at most {}", columns.size(), kMostSeats));
    matrix.emplace_back();
    for (std::size_t gpu = 0; gpu < columns.size(); ++gpu) {
      const std::string word = columns[gpu] < words.size() ? words[columns[gpu]] : "nothing";
      const auto relation = relation_of(word);
      if (!relation || (relation->level == kSelf) != (gpu + 1 == matrix.size()))
        value.fail(
            fmt::format("line {} of the matrix: {} stands between GPU{} and GPU{}; there are NV1 to NV18, PIX, PXB, "
                        "PHB, NODE and SYS, and X of a GPU with itself",
                        number + 1, word, matrix.size() - 1, gpu));
      matrix.back().push_back(*relation);
    }
  }
  if (columns.empty() || matrix.size() != columns.size())
    value.fail(
        fmt::format("a heading of {} GPUs and rows of {}: give what `nvidia-smi topo -m` prints, with its heading",
                    columns.size(), matrix.size()));
  return matrix;
}

/// GPUs that are no farther apart than `level`, over others too, have the number of the first of them. Between two that
/// NVLinks join the matrix does not say: they are taken to be where they are equally far from all others.
std::vector<int> parts_at(const Matrix& matrix, int level) {
  std::vector<int> part(matrix.size());
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<int>(i);
  const auto alike = [&](std::size_t i, std::size_t j) {
    for (std::size_t k = 0; k < matrix.size(); ++k)
      if (k != i && k != j && matrix[i][k].level != matrix[j][k].level && matrix[i][k].level != kNvlink &&
          matrix[j][k].level != kNvlink)
        return false;
    return true;
  };
  for (std::size_t i = 0; i < part.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int between = matrix[i][j].level;
      const bool near =
          between == kNvlink ? level >= static_cast<int>(PcieLevel::node) && alike(i, j) : between <= level;
      if (!near) continue;
      const int from = std::max(part[i], part[j]), to = std::min(part[i], part[j]);
      std::replace(part.begin(), part.end(), from, to);
    }
  return part;
}

std::vector<std::string> text_of(const Value& value) {
  const std::string text = value.text();
  std::vector<std::string> lines;
  if (text.find('\n') != std::string::npos) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  namespace fs = std::filesystem;
  fs::path path(text);
  const auto& origin = value.origin();
  if (path.is_relative() && origin.name) path = fs::path(*origin.name).parent_path() / path;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    value.fail(
        fmt::format("no file '{}': give a file with what `nvidia-smi topo -m` prints, or the matrix itself below "
                    "`topology: |`",
                    path.string()));
  std::ifstream file(path);
  std::size_t read = 0;
  for (std::string line; std::getline(file, line) && read < kMostText; read += line.size() + 1) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<GpuSeat> read_link_tree(const Value& list) { return TreeReader().read(list); }

bool Topology::has_nvlinks() const {
  return std::any_of(nvlinks.begin(), nvlinks.end(), [](const std::vector<int>& row) {
    return std::any_of(row.begin(), row.end(), [](int links) { return links > 0; });
  });
}

Topology read_topology(const Value& value) {
  const Matrix matrix = matrix_of(value, text_of(value));
  std::array<std::vector<int>, 4> parts;
  for (std::size_t level = 0; level < parts.size(); ++level) parts[level] = parts_at(matrix, static_cast<int>(level));
  Topology result;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    result.seats.push_back({.socket = parts[3][i], .root = parts[2][i], .bridge = parts[1][i], .port = parts[0][i]});
    result.nvlinks.emplace_back();
    for (const Relation& one : matrix[i]) result.nvlinks.back().push_back(one.nvlinks);
    for (std::size_t j = 0; j < i; ++j) {
      if (matrix[i][j].level != matrix[j][i].level || matrix[i][j].nvlinks != matrix[j][i].nvlinks)
        value.fail(fmt::format("between GPU{} and GPU{} it says one thing, and another the other way around", i, j));
      const int level = matrix[i][j].level;
      if (level > 0 && parts[static_cast<std::size_t>(level - 1)][i] == parts[static_cast<std::size_t>(level - 1)][j])
        value.fail(fmt::format("GPU{} and GPU{} are farther apart than each is from a third one", i, j));
    }
  }
  return result;
}

}  // namespace ridgeline
