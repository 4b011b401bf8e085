#include "sim/allocator/memory_texts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace ridgeline {
namespace {

constexpr std::size_t npos = std::string_view::npos;

/// The text with one blank for any white space, without colours of terminals and without the backslashes that continue
/// lines of shells and of Python. `lines` has the line of each letter.
std::string flattened(std::string_view text, std::vector<std::uint32_t>& lines) {
  std::string out;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\x1b') {
      while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
      continue;
    }
    if (c == '\\' && i + 1 < text.size() && (text[i + 1] == '\n' || text[i + 1] == 'n')) {
      if (text[i + 1] == 'n') ++i;
      if (!out.ends_with(' ')) out += ' ', lines.push_back(line);
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (!out.ends_with(' ')) out += ' ', lines.push_back(line);
      if (c == '\n') ++line;
      continue;
    }
    out += c;
    lines.push_back(line);
  }
  return out;
}

constexpr std::array<std::pair<std::string_view, int>, 9> kUnits{
    {{"bytes", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"KB", 10}, {"MB", 20}, {"GB", 30}}};

/// "22.00 MiB" at the begin of a text. What no device has, as where a counter went below zero, is not said.
OptionalBytes size_at(std::string_view text) {
  constexpr double kMost = 1e15;
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0.0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  for (const auto& [unit, shift] : kUnits) {
    if (!text.starts_with(unit)) continue;
    const double bytes = std::ldexp(number, shift);
    if (bytes > kMost) return {};
    return static_cast<std::int64_t>(std::llround(bytes));
  }
  return {};
}

OptionalBytes size_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == npos ? OptionalBytes{} : size_at(text.substr(at + words.size()));
}

/// The size in front of words: "10.76 GiB total capacity".
OptionalBytes size_before(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == npos) return {};
  std::size_t begin = text.substr(0, at).find_last_of(' ');  // in front of the unit
  if (begin == npos || begin == 0) return {};
  begin = text.substr(0, begin).find_last_of(" (;");
  return size_at(text.substr(begin == npos ? 0 : begin + 1));
}

OptionalBytes first_of(std::initializer_list<OptionalBytes> sizes) {
  for (const OptionalBytes& size : sizes)
    if (size) return size;
  return {};
}

/// "Process 12 has 3.00 GiB memory in use." of every process.
OptionalBytes of_processes(std::string_view text) {
  OptionalBytes sum;
  for (std::size_t at = text.find("Process "); at != npos; at = text.find("Process ", at + 1)) {
    const std::size_t has = text.find(" has ", at);
    if (has == npos || has - at > 24) continue;
    if (const OptionalBytes size = size_at(text.substr(has + 5))) sum = sum.value_or(0) + *size;
  }
  return sum;
}

std::int64_t gpu_of(std::string_view text) {
  std::int64_t gpu = -1;
  const std::size_t at = text.find("GPU ");
  if (at != npos) std::from_chars(text.data() + at + 4, text.data() + text.size(), gpu);
  return gpu;
}

/// The word in front of "out of memory": CUDA, HIP, XPU, MPS.
std::string backend_of(std::string_view before) {
  while (before.ends_with(' ')) before.remove_suffix(1);
  if (before.ends_with("backend")) before.remove_suffix(7);
  while (before.ends_with(' ')) before.remove_suffix(1);
  return std::string(before.substr(before.find_last_of(" :'\"(") == npos ? 0 : before.find_last_of(" :'\"(") + 1));
}

OutOfMemoryText read_one(std::string_view message, std::int64_t requested) {
  OutOfMemoryText one;
  one.requested = requested;
  one.gpu = gpu_of(message);
  one.capacity = first_of({size_after(message, "total capacity of "), size_after(message, "total capacty of "),
                           size_before(message, " total capacity"), size_after(message, "max allowed: ")});
  one.free =
      first_of({size_before(message, " is free"), size_before(message, " free;"), size_before(message, " free,")});
  one.allocated = first_of({size_before(message, " is allocated by PyTorch"),
                            size_before(message, " already allocated"), size_after(message, "MPS allocated: ")});
  // PyTorch 1.0 to 1.3 call "cached" what is held beyond the tensors, later versions "reserved" all that is held.
  one.unallocated = first_of({size_before(message, " is reserved by PyTorch but unallocated"),
                              size_before(message, " cached)"), size_before(message, " cached;")});
  if (const OptionalBytes reserved = size_before(message, " reserved in total by PyTorch");
      reserved && one.allocated && !one.unallocated)
    one.unallocated = std::max<std::int64_t>(0, *reserved - *one.allocated);
  one.in_use = size_after(message, "this process has ");
  one.other_processes = first_of({of_processes(message), size_after(message, "other allocations: ")});
  one.allowed = size_before(message, " allowed;");
  one.private_pools = size_before(message, " allocated in private pools");
  return one;
}

bool same(const OutOfMemoryText& a, const OutOfMemoryText& b) {
  return a.gpu == b.gpu && a.requested == b.requested && a.free == b.free && a.allocated == b.allocated &&
         a.unallocated == b.unallocated;
}

/// Cells of "| a | b |".
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = line.find('|'); at != npos;) {
    const std::size_t end = line.find('|', at + 1);
    if (end == npos) break;
    std::string_view cell = line.substr(at + 1, end - at - 1);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    cells.push_back(cell);
    at = end;
  }
  return cells;
}

std::int64_t count_after(std::string_view line, std::string_view words) {
  std::int64_t count = 0;
  std::size_t at = line.find(words);
  if (at == npos) return 0;
  at = line.find_first_not_of(' ', at + words.size());
  if (at != npos) std::from_chars(line.data() + at, line.data() + line.size(), count);
  return count;
}

void read_summary_line(std::string_view line, AllocatorTotals& totals) {
  if (line.find("CUDA OOMs:") != npos) {
    totals.out_of_memory = count_after(line, "OOMs:");
    totals.retries = count_after(line, "retries:");
  }
  const std::vector<std::string_view> cells = cells_of(line);
  if (cells.size() < 3) return;
  const OptionalBytes now = size_at(cells[1]), peak = size_at(cells[2]);
  if (!now && !peak) return;
  if (cells[0] == "Allocated memory") totals.allocated = now, totals.peak_allocated = peak;
  if (cells[0] == "GPU reserved memory") totals.reserved = now, totals.peak_reserved = peak;
  if (cells[0] == "Requested memory") totals.requested = now, totals.peak_requested = peak;
  if (cells[0] == "Non-releasable memory") totals.inactive_split = now;
}

/// The number of a key: flat ("a.all.peak": 1), or nested ("a": {"all": {"peak": 1}}).
OptionalBytes stat(std::string_view text, std::string_view name, std::string_view which) {
  const auto number_behind = [&](std::size_t at) -> OptionalBytes {
    at = text.find_first_not_of("'\": ,", at);
    std::int64_t value = 0;
    if (at == npos || std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc{}) return {};
    return value;
  };
  const std::string flat = std::string(name) + ".all." + std::string(which);
  if (const std::size_t at = text.find(flat); at != npos) return number_behind(at + flat.size());
  for (const char quote : {'"', '\''}) {
    const auto quoted = [&](std::string_view key) { return quote + std::string(key) + quote; };
    const std::size_t at = text.find(quoted(name));
    const std::size_t all = at == npos ? npos : text.find(quoted("all"), at);
    if (all == npos) continue;
    const std::size_t end = text.find('}', all), key = text.find(quoted(which), all);
    if (key < end) return number_behind(key + which.size() + 2);
  }
  return {};
}

std::int64_t counter(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  std::int64_t value = 0;
  if (at == npos) return 0;
  const std::size_t number = text.find_first_not_of("'\": ,", at + name.size());
  if (number != npos) std::from_chars(text.data() + number, text.data() + text.size(), value);
  return value;
}

}  // namespace

OptionalBytes OutOfMemoryText::reserved() const {
  return allocated && unallocated ? OptionalBytes{*allocated + *unallocated} : OptionalBytes{};
}

std::vector<OutOfMemoryText> out_of_memory_texts(std::string_view text) {
  constexpr std::string_view kBegin = "out of memory", kTried = "Tried to allocate ";
  constexpr std::size_t kLongest = 1600, kBetween = 200;
  std::vector<std::uint32_t> lines;
  const std::string flat = flattened(text, lines);
  std::vector<OutOfMemoryText> all;
  for (std::size_t at = flat.find(kBegin); at != npos; at = flat.find(kBegin, at + 1)) {
    const std::size_t next = std::min(flat.find(kBegin, at + 1), flat.size());
    const std::string_view message = std::string_view(flat).substr(at, std::min(next - at, kLongest));
    const std::size_t tried = message.find(kTried);
    if (tried == npos || tried > kBetween) continue;
    const OptionalBytes requested = size_at(message.substr(tried + kTried.size()));
    if (!requested) continue;
    OutOfMemoryText one = read_one(message, *requested);
    one.backend = backend_of(std::string_view(flat).substr(0, at));
    one.line = lines[at];
    if (std::none_of(all.begin(), all.end(), [&](const OutOfMemoryText& other) { return same(one, other); }))
      all.push_back(std::move(one));
  }
  return all;
}

std::vector<AllocatorTotals> memory_summaries(std::string_view text) {
  std::vector<AllocatorTotals> all;
  bool open = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t title = line.find("memory summary, device ID ");
    if (title != npos || (!open && line.find("Cur Usage") != npos)) {
      all.emplace_back();
      if (title != npos) all.back().device = count_after(line, "device ID ");
      open = title != npos;
    }
    if (!all.empty()) read_summary_line(line, all.back());
  }
  std::erase_if(all, [](const AllocatorTotals& one) { return !one.allocated && !one.peak_allocated; });
  return all;
}

std::optional<AllocatorTotals> memory_stats(std::string_view text) {
  AllocatorTotals totals;
  totals.allocated = stat(text, "allocated_bytes", "current");
  totals.peak_allocated = stat(text, "allocated_bytes", "peak");
  totals.reserved = stat(text, "reserved_bytes", "current");
  totals.peak_reserved = stat(text, "reserved_bytes", "peak");
  totals.requested = stat(text, "requested_bytes", "current");
  totals.peak_requested = stat(text, "requested_bytes", "peak");
  totals.inactive_split = stat(text, "inactive_split_bytes", "current");
  totals.out_of_memory = counter(text, "num_ooms");
  totals.retries = counter(text, "num_alloc_retries");
  if (!totals.allocated && !totals.peak_allocated) return {};
  return totals;
}

}  // namespace ridgeline
