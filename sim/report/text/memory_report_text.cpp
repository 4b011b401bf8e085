#include "sim/report/text/memory_report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/output/terminal.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t kBesideBar = 44;            // columns of the chart but for its bars
constexpr std::size_t kBesideMaker = 48;          // of a line that says who holds memory, but for who made it
constexpr std::string_view kLetters = "wgoatsi";  // one a category, in the order of Category

std::string layers_of(const MemoryReport::Stretch& s) {
  if (s.first_layer < 0 && s.last_layer < 0) return "";
  if (s.first_layer == s.last_layer) return fmt::format("block {}", s.first_layer);
  if (s.first_layer < 0) return fmt::format("to block {}", s.last_layer);
  if (s.last_layer < 0) return fmt::format("from block {}", s.first_layer);
  return fmt::format("blocks {}-{}", s.first_layer, s.last_layer);
}

/// Letters in proportion; the ends of categories are rounded, so that errors do not add up.
std::string bar(const BytesByCategory& bytes, std::int64_t reserved, std::int64_t full) {
  const std::size_t wide = page_width() - kBesideBar;
  std::string out;
  double sum = 0;
  const auto fill = [&](std::int64_t amount, char letter) {
    sum += static_cast<double>(amount);
    const auto end = static_cast<std::size_t>(std::lround(sum / static_cast<double>(full) * static_cast<double>(wide)));
    out.resize(std::max(out.size(), std::min(end, wide)), letter);
  };
  std::int64_t allocated = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    fill(bytes[i], kLetters[i]);
    allocated += bytes[i];
  }
  fill(reserved - allocated, '.');
  return out;
}

void write_chart(std::string& out, const MemoryReport& r) {
  std::int64_t full = 1;
  for (const auto& stretch : r.stretches) full = std::max(full, stretch.reserved);
  out += "\n  memory over the step; a row shows the fullest moment of its stretch\n";
  std::string legend;
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i)
    legend += fmt::format("{} {}, ", kLetters[i], words(kCategoryNames[i]));
  write_wrapped(out, "  ", legend + ". cached");
  std::string_view phase_before;
  for (const auto& stretch : r.stretches) {
    const std::string_view phase = phase_name(stretch.phase);
    out += fmt::format("  {:<9} {:<13} {:>10} |{}\n", phase == phase_before ? "" : phase, layers_of(stretch),
                       gib(stretch.allocated), bar(stretch.bytes, stretch.reserved, full));
    phase_before = phase;
  }
}

void write_holders(std::string& out, const MemoryReport& r) {
  out += '\n';
  write_wrapped(
      out, "  ",
      fmt::format("at the peak, in {} of the {}{}: {} allocated, {} reserved", r.peak_op, phase_name(r.peak.phase),
                  r.peak.layer >= 0 ? fmt::format(", block {}", r.peak.layer) : "", gib(r.allocated), gib(r.reserved)));
  out += fmt::format("  {:>10} {:>6} {:>8}  {:<16} {}\n", "bytes", "share", "tensors", "category", "made by");
  constexpr std::size_t kShown = 16;
  std::int64_t rest = 0, rest_count = 0;
  for (std::size_t i = 0; i < r.holders.size(); ++i) {
    const MemoryReport::Holder& h = r.holders[i];
    if (i >= kShown) {
      rest += h.bytes;
      rest_count += h.count;
      continue;
    }
    const std::string made_by = h.phase == Phase::setup ? h.op : fmt::format("{} ({})", h.op, phase_name(h.phase));
    out += fmt::format(
        "  {:>10} {:>4.0f} % {:>8}  {:<16} {:.{}}\n", gib(h.bytes),
        100.0 * static_cast<double>(h.bytes) / static_cast<double>(std::max<std::int64_t>(r.allocated, 1)), h.count,
        words(kCategoryNames[static_cast<std::size_t>(h.category)]), made_by, page_width() - kBesideMaker);
  }
  if (rest_count > 0) out += fmt::format("  {:>10} {:>6} {:>8}  all others\n", gib(rest), "", rest_count);
}

void write_layers(std::string& out, const MemoryReport& r) {
  const auto mib = [](std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)); };
  out += fmt::format("\n  {:<16}", "MiB at the peak");
  const auto wide = static_cast<int>(std::min<std::size_t>(10, (page_width() - 18) / kCategoryNames.size() - 1));
  for (const std::string_view name : kCategoryNames) out += fmt::format(" {:>{}.{}}", words(name), wide, wide);
  out += '\n';
  // Equal neighbours share a line.
  for (std::size_t i = 0; i < r.layers.size();) {
    std::size_t end = i + 1;
    while (end < r.layers.size() && r.layers[end].bytes == r.layers[i].bytes && r.layers[i].layer >= 0) ++end;
    const std::int64_t first = r.layers[i].layer, last = r.layers[end - 1].layer;
    const std::string name = first < 0       ? "outside blocks"
                             : first == last ? fmt::format("block {}", first)
                                             : fmt::format("blocks {}-{} each", first, last);
    out += fmt::format("  {:<16}", name);
    for (const std::int64_t bytes : r.layers[i].bytes) out += fmt::format(" {:>{}}", bytes > 0 ? mib(bytes) : "", wide);
    out += '\n';
    i = end;
  }
}

}  // namespace

std::string memory_report_text(const MemoryReport& r) {
  if (r.stretches.empty()) return "\n  no memory report: the step does not fit\n";
  std::string out;
  write_chart(out, r);
  write_holders(out, r);
  write_layers(out, r);
  const MemoryReport::Unused& u = r.unused;
  out += '\n';
  write_wrapped(
      out, "  fragmentation ",
      fmt::format("{} of {} reserved lie unused at the peak ({:.1f} %), in {} segments: the largest free block "
                  "is {}; {} in free segments could go back to the device. Rounding inside blocks takes {}",
                  gib(u.free), gib(r.reserved), 100.0 * u.share(r.reserved), u.segments, gib(u.largest_free),
                  gib(u.whole_segments), gib(u.rounding)));
  return out;
}

ordered_json memory_report_json(const MemoryReport& r) {
  const auto categories = [](const BytesByCategory& bytes) {
    ordered_json out;
    for (std::size_t i = 0; i < bytes.size(); ++i) out[std::string(kCategoryNames[i])] = bytes[i];
    return out;
  };
  ordered_json timeline = ordered_json::array(), layers = ordered_json::array(), holders = ordered_json::array();
  for (const auto& s : r.stretches) {
    timeline.push_back({{"phase", phase_name(s.phase)},
                        {"first_layer", s.first_layer},
                        {"last_layer", s.last_layer},
                        {"allocated_bytes", s.allocated},
                        {"reserved_bytes", s.reserved}});
    timeline.back().update(categories(s.bytes));
  }
  for (const auto& l : r.layers) {
    layers.push_back({{"layer", l.layer}});
    layers.back().update(categories(l.bytes));
  }
  for (const auto& h : r.holders)
    holders.push_back({{"op", h.op},
                       {"category", kCategoryNames[static_cast<std::size_t>(h.category)]},
                       {"phase", phase_name(h.phase)},
                       {"tensors", h.count},
                       {"bytes", h.bytes}});
  return {{"peak",
           {{"op", r.peak_op},
            {"phase", phase_name(r.peak.phase)},
            {"layer", r.peak.layer},
            {"allocated_bytes", r.allocated},
            {"reserved_bytes", r.reserved},
            {"breakdown", categories(r.bytes)}}},
          {"timeline", std::move(timeline)},
          {"by_layer", std::move(layers)},
          {"by_op", std::move(holders)},
          {"fragmentation",
           {{"segments", r.unused.segments},
            {"free_bytes", r.unused.free},
            {"free_share", r.unused.share(r.reserved)},
            {"largest_free_block_bytes", r.unused.largest_free},
            {"free_segments_bytes", r.unused.whole_segments},
            {"rounding_bytes", r.unused.rounding}}}};
}

}  // namespace ridgeline
