#include "sim/allocator/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/units/meant_name.h"

namespace ridgeline {
namespace {

constexpr int kIntervals = 16;

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// Splits at commas outside of brackets.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto item = trimmed(text.substr(begin, i - begin)); !item.empty()) items.push_back(item);
      begin = i + 1;
    }
  }
  return items;
}

template <typename Number>
Number number(std::string_view key, std::string_view value, Number low, Number high) {
  Number result{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size() || result < low || result > high) {
    throw std::invalid_argument(fmt::format("{} is \"{}\"; expected a number from {} to {}", key, value, low, high));
  }
  return result;
}

bool truth(std::string_view key, std::string_view value) {
  if (value == "True" || value == "true") return true;
  if (value == "False" || value == "false") return false;
  throw std::invalid_argument(fmt::format("{} is \"{}\"; expected True or False", key, value));
}

int interval_of(std::int64_t bytes) {
  const int log2 = 63 - std::countl_zero(static_cast<std::uint64_t>(bytes));
  return std::clamp(log2 - 20, 0, kIntervals - 1);
}

int divisions_from(std::string_view key, std::string_view value) {
  const int divisions = number(key, value, 0, 1 << 20);
  if (divisions != 0 && !std::has_single_bit(static_cast<unsigned>(divisions))) {
    throw std::invalid_argument(fmt::format("{} is {}; expected a power of two", key, divisions));
  }
  return divisions;
}

/// "4" for all sizes, or "[256:1,512:2,>:4]": sizes in MiB and the divisions from there to the next power of two.
void set_divisions(AllocatorSettings& settings, std::string_view key, std::string_view value) {
  auto& divisions = settings.roundup_power2_divisions;
  if (value.empty() || value.front() != '[') {
    divisions.fill(divisions_from(key, value));
    return;
  }
  if (value.back() != ']')
    throw std::invalid_argument(fmt::format("{} is \"{}\"; expected a closing bracket", key, value));
  int next = 0;
  for (const auto item : items_of(value.substr(1, value.size() - 2))) {
    const auto colon = item.find(':');
    if (colon == std::string_view::npos)
      throw std::invalid_argument(fmt::format("{}: \"{}\" is not SIZE:DIVISIONS", key, item));
    const auto size = trimmed(item.substr(0, colon));
    const int count = divisions_from(key, trimmed(item.substr(colon + 1)));
    if (size == ">") {  // everything above the sizes named so far
      std::fill(divisions.begin() + next, divisions.end(), count);
      next = kIntervals;
    } else {  // the first size named also holds for everything below it; a size left out between two rounds to 512
              // bytes
      const int index = interval_of(number<std::int64_t>(key, size, 1, 1 << 20) << 20);
      std::fill(divisions.begin() + (next == 0 ? 0 : index), divisions.begin() + index + 1, count);
      next = index + 1;
    }
  }
}

}  // namespace

AllocatorSettings AllocatorSettings::parse(std::string_view text) {
  static constexpr std::string_view kWithoutEffect[] = {"backend",
                                                        "release_lock_on_cudamalloc",
                                                        "pinned_use_background_threads",
                                                        "pinned_use_cuda_host_register",
                                                        "pinned_num_register_threads",
                                                        "pinned_reserve_segment_size_mb",
                                                        "graph_capture_record_stream_reuse"};
  std::vector<std::string> known(std::begin(kWithoutEffect), std::end(kWithoutEffect));
  known.insert(known.end(),
               {"expandable_segments", "max_split_size_mb", "max_non_split_rounding_mb", "large_segment_size_mb",
                "garbage_collection_threshold", "per_process_memory_fraction", "roundup_power2_divisions"});
  AllocatorSettings settings;
  for (const auto item : items_of(text)) {
    const auto colon = item.find(':');
    if (colon == std::string_view::npos) throw std::invalid_argument(fmt::format("\"{}\" is not KEY:VALUE", item));
    const auto key = trimmed(item.substr(0, colon)), value = trimmed(item.substr(colon + 1));
    const auto mebibytes = [&](std::int64_t low) { return number<std::int64_t>(key, value, low, 1 << 30) << 20; };
    if (key == "expandable_segments") settings.expandable_segments = truth(key, value);
    else if (key == "max_split_size_mb") settings.max_split_size = mebibytes(20);
    else if (key == "max_non_split_rounding_mb") settings.max_non_split_rounding = mebibytes(20);
    else if (key == "large_segment_size_mb") settings.large_segment_size = mebibytes(2);
    else if (key == "garbage_collection_threshold")
      settings.garbage_collection_threshold = number(key, value, 0.0, 1.0);
    else if (key == "per_process_memory_fraction") settings.memory_fraction = number(key, value, 0.0, 1.0);
    else if (key == "roundup_power2_divisions") set_divisions(settings, key, value);
    else if (std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), key) == std::end(kWithoutEffect)) {
      throw std::invalid_argument(fmt::format("unknown allocator setting \"{}\"; {}", key, expected_names(key, known)));
    }
  }
  return settings;
}

std::int64_t rounded_request(std::int64_t bytes, const AllocatorSettings& settings) {
  if (bytes < kMinBlock) return kMinBlock;
  const std::int64_t divisions = settings.roundup_power2_divisions[static_cast<std::size_t>(interval_of(bytes))];
  if (divisions > 1 && bytes > kMinBlock * divisions) {
    const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    const std::int64_t division = floor / divisions;
    return (bytes + division - 1) / division * division;
  }
  return (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
}

std::int64_t segment_size(std::int64_t rounded, const AllocatorSettings& settings) {
  if (rounded <= kLargestSmall) return kSmallSegment;
  if (rounded < kOwnSegment) return settings.large_segment_size;
  return (rounded + kSegmentRounding - 1) / kSegmentRounding * kSegmentRounding;
}

}  // namespace ridgeline
