#include "sim/trace/nsight/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "sim/input/text_source.h"
#include "sim/trace/nsight/table_cells.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/units/utf8.h"

namespace ridgeline::trace {
namespace {

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

/// Where a table has what is read of it, by its headings.
struct TableHeadings {
  std::size_t name = kAbsent, total = kAbsent, count = kAbsent, mean = kAbsent, start = kAbsent, category = kAbsent,
              type = kAbsent;
  double unit = 1e-9;      ///< seconds of the total's
  bool unit_said = false;  ///< else it may stand in the line below, as nvprof writes it
  bool of_calls = false, of_ranges = false, of_copies = false;

  [[nodiscard]] bool usable() const {
    return name != kAbsent && (total != kAbsent || (mean != kAbsent && count != kAbsent));
  }
};

std::optional<TableHeadings> headings_in(const Cells& cells) {
  if (cells.size() < 3) return std::nullopt;
  TableHeadings found;
  std::string mean_unit, total_unit;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Heading heading = heading_of(cells[i]);
    const std::string& h = heading.name;
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), h) != names.end();
    };
    if (is({"name", "kernel name"})) found.name = i;
    else if (is({"range", "nvtx range"})) {
      if (found.name == kAbsent) found.name = i, found.of_ranges = true;
    } else if (is({"operation"})) found.name = i, found.of_copies = true;
    else if (is({"total time", "total", "duration", "kernel dur", "time"}) && heading.unit != "%") {
      if (found.total == kAbsent) found.total = i, total_unit = heading.unit;
    } else if (is({"instances", "count", "num calls", "calls", "kern inst", "nvtx inst", "kernel instances"})) {
      if (found.count == kAbsent || h == "kern inst") found.count = i;
      found.of_calls = found.of_calls || h == "num calls";
    } else if (is({"avg", "average", "kavg", "mean"})) {
      if (found.mean == kAbsent || h == "kavg") found.mean = i, mean_unit = heading.unit;
    } else if (is({"start", "kernel start", "api start"})) found.start = i;
    else if (is({"category"})) found.category = i;
    else if (is({"type"})) found.type = i;
  }
  if (found.name != kAbsent && heading_of(cells[found.name]).name == "kernel name") found.of_ranges = false;
  if (!found.usable()) return std::nullopt;
  const std::string& unit = found.total != kAbsent ? total_unit : mean_unit;
  if (const auto seconds = seconds_of_unit(unit)) found.unit = *seconds, found.unit_said = true;
  return found;
}

TableKind kind_by_name(std::string_view name) {
  const bool cuda = name.starts_with("cu") || name.starts_with("nccl");
  return cuda ? TableKind::api : TableKind::system;
}

class TableReader {
 public:
  explicit TableReader(const std::string& path) : path_(path) {}

  void line(std::string_view text, std::size_t number) {
    keep_budget_often("reading a table");
    if (text.find_first_not_of(" \t\r") == text.npos) {
      end_table();
      return;
    }
    note_report(text);
    if (const Extents extents = extents_of(text); extents.size() > 2) {
      begin_columns(extents);
      return;
    }
    if (table_ && !extents_.empty()) return row(cells_within(text, extents_), number);
    const char separator = separator_of(text);
    const Cells cells = cells_of(text, separator);
    if (auto headings = headings_in(cells)) {
      table_ = std::move(headings);
      separator_ = separator;
      columns_ = cells.size();
      extents_.clear();
      first_ = true;
      found_ = true;
      return;
    }
    if (table_ && extents_.empty()) return row(cells_of(text, separator_), number);
    before_ = std::string(text);  // of a table in columns, whose dashes come next
  }

  [[nodiscard]] bool found() const { return found_; }

  ProfileTables finish() {
    for (auto& [key, row] : rows_) tables_.rows.push_back(std::move(row));
    std::stable_sort(tables_.rows.begin(), tables_.rows.end(),
                     [](const TableRow& a, const TableRow& b) { return a.seconds > b.seconds; });
    return std::move(tables_);
  }

 private:
  void end_table() {
    if (first_) return;  // a blank line between headings and rows
    table_.reset();
    extents_.clear();
  }

  /// "** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):", "Processing [x.sqlite] with [/opt/.../gpukernsum.py]...".
  void note_report(std::string_view text) {
    std::string name;
    if (const std::size_t open = text.rfind('('); text.find("**") != text.npos && open != text.npos)
      name = text.substr(open + 1, text.find(')', open) - open - 1);
    else if (text.starts_with("Processing [") && text.find(".py]") != text.npos) {
      const std::string_view script = text.substr(0, text.find(".py]"));
      name = script.substr(script.find_last_of("/[") + 1);
    }
    constexpr std::size_t kMostReports = 64, kLongest = 64;
    if (!name.empty() && name.size() < kLongest && tables_.reports.size() < kMostReports)
      tables_.reports.push_back(as_utf8(name));
  }

  void begin_columns(const Extents& extents) {
    auto headings = headings_in(cells_within(before_, extents));
    if (!headings) return;
    table_ = std::move(headings);
    columns_ = extents.size();
    extents_ = extents;
    first_ = false;
    found_ = true;
  }

  void row(const Cells& cells, std::size_t number) {
    TableHeadings& t = *table_;
    const auto cell = [&](std::size_t i) { return i < cells.size() ? std::string_view(cells[i]) : std::string_view(); };
    if (std::exchange(first_, false) && !t.unit_said)
      if (const auto seconds = seconds_of_unit(cell(t.total != kAbsent ? t.total : t.mean))) {
        t.unit = *seconds;
        return;
      }
    if (cells.size() < columns_) {  // a line behind the table
      table_.reset();
      return;
    }
    const auto total = number_in(cell(t.total)), mean = number_in(cell(t.mean)), count = number_in(cell(t.count));
    const std::optional<double> time = total ? total : (mean && count ? std::optional(*mean * *count) : std::nullopt);
    if (!time || *time < 0.0)
      throw UserError(fmt::format("{}:{}: '{}' is no time", path_, number,
                                  as_utf8(cell(t.total != kAbsent ? t.total : t.mean)).substr(0, 60)));
    TableRow one{kind_of(cells), as_utf8(cell(t.name)), *time * t.unit, count.value_or(1.0)};
    TableRow& sum = rows_.try_emplace({one.kind, one.name}, TableRow{one.kind, one.name, 0.0, 0.0}).first->second;
    sum.seconds += one.seconds;
    sum.count += one.count;
    constexpr std::size_t kMostNames = 1'000'000;
    if (rows_.size() > kMostNames) throw UserError(fmt::format("{}: more than {} names", path_, kMostNames));
  }

  [[nodiscard]] TableKind kind_of(const Cells& cells) const {
    const TableHeadings& t = *table_;
    const std::string& name = cells[t.name];
    const bool copy = name.starts_with("[CUDA mem") || name.starts_with("Memcpy") || name.starts_with("Memset");
    if (t.category != kAbsent) {
      const std::string& category = cells[t.category];
      if (category.find("KERNEL") != category.npos) return TableKind::kernels;
      if (category.find("API") != category.npos) return TableKind::api;
      return TableKind::copies;
    }
    if (t.type != kAbsent && cells[t.type].find("API") != std::string::npos) return TableKind::api;
    if (t.of_ranges) return TableKind::ranges;
    if (t.of_copies || copy) return TableKind::copies;
    return t.of_calls ? kind_by_name(name) : TableKind::kernels;
  }

  const std::string& path_;
  std::optional<TableHeadings> table_;
  Extents extents_;  ///< of a table in columns
  char separator_ = ',';
  std::size_t columns_ = 0;
  bool first_ = false, found_ = false;
  std::string before_;
  std::map<std::pair<TableKind, std::string>, TableRow> rows_;
  ProfileTables tables_;
};

}  // namespace

std::string_view name_of(TableKind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"kernels", "copies", "CUDA API calls", "NVTX ranges",
                                                          "calls of the operating system"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool looks_like_profile_tables(const std::string& path) {
  constexpr std::size_t kHead = 1 << 16;
  std::string head;
  TextSource(path, {}, Empty::read).read(head);
  head.resize(std::min(head.size(), kHead));
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == head.npos || head[begin] == '{' || head.find('\0') != head.npos) return false;
  TableReader reader(path);
  try {
    for_lines(head.substr(0, head.rfind('\n')),
              [&](std::string_view line, std::size_t number) { reader.line(line, number); });
  } catch (const UserError&) {  // told when it is read
  }
  return reader.found();
}

ProfileTables read_profile_tables(const std::string& path) {
  const std::string text = read_text(path);
  TableReader reader(path);
  for_lines(text, [&](std::string_view line, std::size_t number) { reader.line(line, number); });
  ProfileTables tables = reader.finish();
  if (tables.rows.empty()) throw UserError(fmt::format("{}: a table of a profiler without any row", path));
  return tables;
}

}  // namespace ridgeline::trace
