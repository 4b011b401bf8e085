#include "sim/hardware/describe_gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/config/asked.h"
#include "sim/config/other_words.h"
#include "sim/config/problems.h"
#include "sim/hardware/field_reader.h"
#include "sim/hardware/keys.h"
#include "sim/units/meant_name.h"

namespace ridgeline {
namespace {

/// Top-level keys that are no field: read elsewhere (load_gpu.cpp).
constexpr std::array<std::string_view, 5> kPlainKeys{"title", "aliases", "extends", "source", "measured"};

/// What no architecture brings and no other number gives an estimate of.
bool is_of_the_board(std::string_view key) {
  constexpr std::array<std::string_view, 8> kOwn{"architecture", "sm.count",  "clock.boost",   "power.limit",
                                                 "l2.capacity",  "dram.type", "dram.capacity", "dram.bandwidth"};
  return std::find(kOwn.begin(), kOwn.end(), key) != kOwn.end();
}

/// Names that may stand in the section at `prefix` ("", "sm.", "sm.rates."), in the order of the table.
std::vector<std::string> names_in(std::string_view prefix) {
  std::vector<std::string> names;
  if (prefix.empty()) names.assign(kPlainKeys.begin(), kPlainKeys.end());
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.key.starts_with(prefix)) continue;
    const std::string_view rest = key.key.substr(prefix.size());
    const std::string name(rest.substr(0, rest.find('.')));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// The dotted key or section that was meant, also when it stands in another section; empty when none is near.
std::string meant_key(const std::string& prefix, const std::string& given, const std::vector<std::string>& known) {
  const std::string meant = meant_name(given, known);
  for (const HardwareKey& key : hardware_keys())
    if (key.key.ends_with("." + given)) return std::string(key.key);
  const config::OtherWord* word = meant.empty() ? config::other_word(given) : nullptr;
  if (word != nullptr &&
      (find_hardware_key(word->key) || std::find(known.begin(), known.end(), word->key) != known.end()))
    return std::string(word->key);
  return meant.empty() ? "" : prefix + meant;
}

/// Reports what is no key, and sections that are no mapping; their prefixes go to `broken`. Keys that were
/// meant, and so are not missing besides, go to `meant_instead`.
void check_names(const config::Value& section, const std::string& prefix, config::Problems& problems,
                 std::vector<std::string>& broken, std::vector<std::string>& meant_instead) {
  if (!section.is_mapping()) {
    broken.push_back(prefix);
    (void)problems.attempt([&] { section.fail("expected a mapping, got " + section.node().describe()); });
    return;
  }
  const std::vector<std::string> known = names_in(prefix);
  for (const config::Entry& entry : section.node().entries) {
    const std::string key = prefix + entry.key;
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      const std::string meant = meant_key(prefix, entry.key, known);
      const std::string shown = meant.starts_with(prefix) ? meant.substr(prefix.size()) : meant;
      problems.add({entry.key_origin, key,
                    fmt::format("unknown key; {}{}",
                                meant.empty() ? "expected one of " : fmt::format("did you mean {}? Allowed: ", shown),
                                some_names(known))});
      if (!meant.empty()) meant_instead.push_back(meant);
    } else if (!find_hardware_key(key) &&
               !(prefix.empty() && std::find(kPlainKeys.begin(), kPlainKeys.end(), entry.key) != kPlainKeys.end())) {
      check_names(section[entry.key], key + ".", problems, broken, meant_instead);
    }
  }
}

bool is_broken(std::string_view key, const std::vector<std::string>& broken) {
  return std::any_of(broken.begin(), broken.end(),
                     [key](const std::string& prefix) { return key.starts_with(prefix); });
}

/// Values that are fine alone and impossible together; reported at the second of the two keys.
struct Together {
  bool (*holds)(const Gpu&);
  std::string_view key, message, other;
};
constexpr std::array kTogether{
    Together{[](const Gpu& gpu) { return gpu.sm.shared_per_sm <= gpu.sm.l1_and_shared; }, "sm.shared_per_sm",
             "more than sm.l1_and_shared", "sm.l1_and_shared"},
    Together{[](const Gpu& gpu) { return gpu.sm.shared_per_block <= gpu.sm.shared_per_sm; }, "sm.shared_per_block",
             "more than sm.shared_per_sm", "sm.shared_per_sm"},
    Together{[](const Gpu& gpu) { return gpu.sm.max_threads_per_block <= 32 * gpu.sm.max_warps; },
             "sm.max_threads_per_block", "a block of this many threads never fits sm.max_warps warps of 32",
             "sm.max_warps"},
    Together{[](const Gpu& gpu) { return gpu.clock.lowest <= gpu.clock.boost; }, "clock.lowest", "above clock.boost",
             "clock.boost"},
    Together{[](const Gpu& gpu) { return gpu.clock.knee < gpu.clock.boost; }, "clock.knee",
             "not below clock.boost: the voltage would not rise", "clock.boost"},
    Together{[](const Gpu& gpu) { return gpu.clock.tensor_droop < gpu.clock.tensor; }, "clock.tensor_droop",
             "not below clock.tensor: nothing is left", "clock.tensor"},
    Together{[](const Gpu& gpu) { return gpu.power.idle < gpu.power.limit; }, "power.idle", "not below power.limit",
             "power.limit"},
    Together{[](const Gpu& gpu) { return gpu.l2.resident_full < gpu.l2.resident_none; }, "l2.resident_none",
             "not above l2.resident_full", "l2.resident_full"},
    Together{[](const Gpu& gpu) { return gpu.l2.capacity < gpu.dram.capacity; }, "l2.capacity",
             "not below dram.capacity", "dram.capacity"}};

void check_together(const config::Value& root, const Gpu& gpu, const std::set<std::string_view>& wrong,
                    config::Problems& problems) {
  for (const Together& pair : kTogether)
    if (!pair.holds(gpu) && !wrong.contains(pair.key) && !wrong.contains(pair.other))
      (void)problems.attempt([&] { value_at(root, pair.key).fail(pair.message); });
}

}  // namespace

config::Value value_at(const config::Value& root, std::string_view key) {
  config::Value value = root;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    if (!value.is_mapping()) return config::Value::absent(std::string(key), value.origin());
    value = value[key.substr(begin, end - begin)];
    if (!value.exists()) return config::Value::absent(std::string(key), value.origin());
    begin = end + 1;
  }
  return value;
}

void read_gpu(const config::Value& root, Gpu& gpu, std::vector<SheetRow>* rows, std::vector<SheetRow>* assumed) {
  config::Problems problems;
  std::vector<std::string> broken;
  std::vector<std::string> meant_instead;
  check_names(root, "", problems, broken, meant_instead);
  std::set<std::string_view> wrong;
  std::vector<const HardwareKey*> missing;
  gpu.gemm = {};
  for (const HardwareKey& key : hardware_keys()) {
    if (is_broken(key.key, broken)) {
      wrong.insert(key.key);
      continue;
    }
    const config::Value field = value_at(root, key.key);
    if (!field.exists() && is_broken(key.key, meant_instead)) {
      wrong.insert(key.key);
      continue;
    }
    if (!field.exists() && !key.required) {
      if (!assumed) continue;
      SheetRow row;
      row.key = key.key;
      row.value = key.show(gpu);
      row.source = "assumed: the file does not say";
      assumed->push_back(std::move(row));
      continue;
    }
    if (!field.exists()) {
      wrong.insert(key.key);
      missing.push_back(&key);
      continue;
    }
    const bool fits = key.kind != KeyKind::list || problems.empty();  // kernels are checked against a whole SM
    const bool fine = problems.attempt([&] {
      SheetRow row = read_described(field, [&](const config::Value& value) {
        if (fits) key.read(value, key, gpu);
      });
      if (rows) rows->push_back(std::move(row));
    });
    if (!fine) wrong.insert(key.key);
  }
  // What an architecture brings, or an estimate makes of the numbers of the board, is not missing besides them.
  const bool board_lacks = std::any_of(wrong.begin(), wrong.end(), is_of_the_board);
  for (const HardwareKey* key : missing)
    if (!board_lacks || is_of_the_board(key->key))
      problems.add({value_at(root, key->key).origin(), key->key,
                    fmt::format("missing; this key is required ({})", key->allowed())});
  (void)problems.attempt([&] {
    if (root.is_mapping()) gpu.title = root["title"].text();
  });
  check_together(root, gpu, wrong, problems);
  problems.raise();
}

std::optional<Gpu> changed_gpu(const Gpu& described, const std::vector<config::Override>& changes) {
  if (!described.gemm.tiles.empty() || config::AskedOf::listens()) return std::nullopt;
  Gpu gpu = described;
  try {
    for (const config::Override& change : changes) {
      const HardwareKey* key = find_hardware_key(change.key);
      if (key == nullptr || key->kind == KeyKind::list) return std::nullopt;
      const config::Node value = config::value_of(change);
      (void)read_described(config::Value(value, change.key),
                           [&](const config::Value& given) { key->read(given, *key, gpu); });
    }
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
  if (!std::all_of(kTogether.begin(), kTogether.end(), [&](const Together& pair) { return pair.holds(gpu); }))
    return std::nullopt;
  return gpu;
}

}  // namespace ridgeline
