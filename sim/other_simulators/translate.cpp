#include "sim/other_simulators/translate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/units/nearest_name.h"
#include "sim/units/user_error.h"

namespace ridgeline::other_simulators {
namespace {

double tensor_flops(const Gpu& gpu) {
  return 2.0 * gpu.sm.count * gpu.sm.rates.tensor_fp16 * gpu.clock.boost_tensor.value();
}

/// A shipped GPU's value in the place of a fact; 0 where that is no number of a chip.
double shipped(const Gpu& gpu, Fact fact) {
  switch (fact) {
    case Fact::tensor_flops: return tensor_flops(gpu);
    case Fact::memory: return gpu.dram.capacity.value();
    case Fact::memory_bandwidth: return gpu.dram.bandwidth.value();
    case Fact::sms: return gpu.sm.count;
    case Fact::clock: return gpu.clock.boost.value();
    case Fact::l2: return gpu.l2.capacity.value();
    default: return 0.0;
  }
}

/// Words of letters and digits: "a100", "80gb".
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : in_small_letters(text) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (!word.empty()) words.insert(word);
    if (word.starts_with("rtx")) words.insert(word.substr(3));
    word.clear();
  }
  return words;
}

/// The GPU whose name the file says, among these the one with the nearest numbers; of all, where it says none.
Gpu nearest(const MachineFacts& machine, const std::string& file) {
  const std::filesystem::path path(file);
  const std::set<std::string> said =
      words_of(fmt::format("{} {} {}", machine.title, path.stem().string(), path.parent_path().filename().string()));
  double best_distance = std::numeric_limits<double>::infinity();
  std::string best;
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name, {}, Numbers::datasheet);
    std::set<std::string> own = words_of(name);
    for (const char* common : {"nvidia", "rtx", "pcie", "sxm", "sxm2", "sxm4", "sxm5"}) own.erase(common);
    std::erase_if(own, [](const std::string& word) { return word.ends_with("gb"); });
    const bool same = machine.compute_capability == 10 * gpu.compute_major + gpu.compute_minor;
    const bool named =
        same || std::any_of(own.begin(), own.end(), [&](const std::string& word) { return said.contains(word); });
    constexpr double kUnnamed = 100.0;  // more than numbers can differ
    double distance = named ? 0.0 : kUnnamed;
    for (const auto& [fact, held] : machine.facts)
      if (const double other = shipped(gpu, fact); other > 0.0) distance += std::pow(std::log(held.value / other), 2);
    for (const auto& word : {"pcie", "sxm"})
      if (said.contains(word) && name.find(word) == std::string::npos) distance += 0.1;
    constexpr double kSlot = 70e9;  // more than a slot of PCIe 5.0 has: the board is no card
    if (machine.says(Fact::link) && machine.at(Fact::link) > kSlot && name.find("pcie") != std::string::npos)
      distance += 0.2;
    if (distance < best_distance) best_distance = distance, best = name;
  }
  return load_gpu(best, {}, Numbers::datasheet);
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text)
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 32) out += c;
  return out + "\"";
}

std::string amount(Fact fact, double value) {
  constexpr double kOneGB = 1e9, kOneMHz = 1e6, kOneMiB = 1 << 20, kOneGiB = 1 << 30;
  switch (fact) {
    case Fact::memory: return fmt::format("{:.6g} GiB", value / kOneGiB);
    case Fact::l2: return fmt::format("{:.6g} MiB", value / kOneMiB);
    case Fact::shared:
    case Fact::l1_and_shared: return fmt::format("{:.6g} KiB", value / 1024.0);
    case Fact::memory_bandwidth:
    case Fact::link:
    case Fact::nic: return fmt::format("{:.6g} GB/s", value / kOneGB);
    case Fact::clock: return fmt::format("{:.6g} MHz", value / kOneMHz);
    case Fact::tensor_flops: return fmt::format("{:.6g} TFLOP/s", value / 1e12);
    case Fact::power: return fmt::format("{:.6g} W", value);
    case Fact::nic_latency: return fmt::format("{:.6g} us", value * 1e6);
    default: return fmt::format("{:.0f}", value);
  }
}

class Writer {
 public:
  Writer(const MachineFacts& machine, const Gpu& base, const std::string& file)
      : m_(machine), base_(base), file_(file) {}

  std::string chip() {
    if (std::none_of(m_.facts.begin(), m_.facts.end(), [&](const auto& one) { return of_chip(one.first); })) return "";
    std::string sections = section("sm",
                                   {{"count", Fact::sms},
                                    {"registers", Fact::registers},
                                    {"max_warps", Fact::warps},
                                    {"shared_per_sm", Fact::shared},
                                    {"l1_and_shared", Fact::l1_and_shared}},
                                   rates());
    sections +=
        section("clock", {{"boost", Fact::clock}, {"boost_tensor", Fact::clock}, {"sustained", Fact::clock}}, clocks());
    sections += section("power", {{"limit", Fact::power}}, "");
    sections += section("l2", {{"capacity", Fact::l2}}, "");
    sections += section("dram", {{"capacity", Fact::memory}, {"bandwidth", Fact::memory_bandwidth}}, "");
    return heading("GPU") + proposals() +
           fmt::format("title: {}\nextends: {}\nsource: {}\n", quoted_text(m_.title), base_.name,
                       quoted_text(source())) +
           sections;
  }

  std::string cluster() {
    if (!m_.says(Fact::link) && !m_.says(Fact::nic) && !m_.says(Fact::gpus)) return "";
    const double gpus = m_.says(Fact::gpus) ? std::round(m_.at(Fact::gpus)) : 8.0;
    const double nodes = m_.says(Fact::nodes) ? std::round(m_.at(Fact::nodes)) : 1.0;
    std::string out = heading("cluster");
    out +=
        fmt::format("title: {}\ngpu: {}  # the nearest that ships; or the path of the GPU's description\nsource: {}\n",
                    quoted_text(m_.title), base_.name, quoted_text(source()));
    out += fmt::format("nodes: {:.0f}{}\ngpus: {:.0f}{}\n", nodes, key_of(Fact::nodes), gpus, key_of(Fact::gpus));
    constexpr double kPcie = 70e9;  // a slot of PCIe 5.0 and no more
    if (m_.says(Fact::link) && gpus > 1.0 && m_.at(Fact::link) <= kPcie)
      out += fmt::format("interconnect: pcie\npcie:\n  rate: {}{}\n", amount(Fact::link, m_.at(Fact::link)),
                         key_of(Fact::link));
    else if (m_.says(Fact::link) && gpus > 1.0)
      out += fmt::format("interconnect: nvswitch\nlinks:\n  count: 1  # as one link\n  rate: {}{}\n",
                         amount(Fact::link, m_.at(Fact::link)), key_of(Fact::link));
    else if (gpus == 1.0) out += "interconnect: none\n";
    if (m_.says(Fact::nic)) {
      out += fmt::format("nics:\n  count: {:.0f}  # one a GPU\n  rate: {}{}\n", gpus,
                         amount(Fact::nic, m_.at(Fact::nic)), key_of(Fact::nic));
      if (m_.says(Fact::nic_latency))
        out += fmt::format("  latency: {}{}\n", amount(Fact::nic_latency, m_.at(Fact::nic_latency)),
                           key_of(Fact::nic_latency));
    }
    return out;
  }

 private:
  static bool of_chip(Fact fact) { return fact < Fact::link; }

  [[nodiscard]] std::string source() const {
    return fmt::format("{}'s {}", m_.tool, std::filesystem::path(file_).filename().string());
  }
  [[nodiscard]] std::string heading(std::string_view what) const {
    std::string out = fmt::format("# A {} from {}: a value has the file's key behind it.\n", what, source());
    if (!m_.systems.empty())
      out += fmt::format("# Systems of the file, for --system: {}\n", fmt::join(m_.systems, ", "));
    for (const std::string& note : m_.notes) out += fmt::format("# {}\n", note);
    if (!m_.unread.empty())
      out +=
          fmt::format("# In the file and not used, for Ridgeline's laws work it out: {}\n", fmt::join(m_.unread, ", "));
    return out;
  }
  [[nodiscard]] std::string key_of(Fact fact) const {
    const auto found = m_.facts.find(fact);
    return found == m_.facts.end() ? "  # not said" : "  # " + found->second.key;
  }

  /// Numbers of the base that decide most, where the file does not say them.
  [[nodiscard]] std::string proposals() const {
    std::string out = fmt::format("# Not said by the file, proposed from {}, the nearest that ships:\n", base_.name);
    for (const auto& [fact, key] : {std::pair{Fact::sms, "sm.count"},
                                    {Fact::clock, "clock.boost"},
                                    {Fact::tensor_flops, "peak of the tensor cores, fp16"},
                                    {Fact::l2, "l2.capacity"},
                                    {Fact::memory, "dram.capacity"},
                                    {Fact::memory_bandwidth, "dram.bandwidth"}})
      if (!m_.says(fact)) out += fmt::format("#   {}: {}\n", key, amount(fact, shipped(base_, fact)));
    out += fmt::format("#   power.limit: {:.6g} W\n", base_.power.limit.value());
    return out + fmt::format("#   and all other keys: ridgeline hardware {}\n", base_.name);
  }

  /// Rates of the tensor cores that give the file's peak, where it is another than the base's.
  [[nodiscard]] std::string rates() const {
    if (!m_.says(Fact::tensor_flops)) return "";
    constexpr double kSame = 0.05;
    const double sms = m_.says(Fact::sms) ? m_.at(Fact::sms) : base_.sm.count;
    const double clock = m_.says(Fact::clock) ? m_.at(Fact::clock) : base_.clock.boost_tensor.value();
    const double rate = m_.at(Fact::tensor_flops) / (2.0 * sms * clock);
    if (std::abs(rate / base_.sm.rates.tensor_fp16 - 1.0) < kSame)
      return fmt::format("  # {} {}: the rate of the base\n", m_.facts.at(Fact::tensor_flops).key,
                         amount(Fact::tensor_flops, m_.at(Fact::tensor_flops)));
    const double tf32 = base_.sm.rates.tensor_tf32 / std::max(1.0, base_.sm.rates.tensor_fp16) * rate;
    std::string out = fmt::format("  rates:\n    tensor_fp16: {:.6g}{}: {}\n", rate, key_of(Fact::tensor_flops),
                                  amount(Fact::tensor_flops, m_.at(Fact::tensor_flops)));
    if (base_.sm.rates.tensor_bf16 > 0.0) out += fmt::format("    tensor_bf16: {:.6g}\n", rate);
    if (tf32 > 0.0) out += fmt::format("    tensor_tf32: {:.6g}  # its share of the base\n", tf32);
    return out;
  }

  /// Clocks that the file does not say keep their share of the boost clock.
  [[nodiscard]] std::string clocks() const {
    if (!m_.says(Fact::clock)) return "";
    const double share = m_.at(Fact::clock) / base_.clock.boost.value();
    std::string out;
    for (const auto& [key, clock] : {std::pair{"tensor", base_.clock.tensor},
                                     {"tensor_droop", base_.clock.tensor_droop},
                                     {"lowest", base_.clock.lowest},
                                     {"knee", base_.clock.knee}})
      if (clock.value() > 0.0)
        out += fmt::format("  {}: {}  # its share of the base\n", key, amount(Fact::clock, clock.value() * share));
    return out;
  }

  [[nodiscard]] std::string section(std::string_view name, std::vector<std::pair<const char*, Fact>> keys,
                                    const std::string& behind) const {
    std::string lines;
    for (const auto& [key, fact] : keys)
      if (m_.says(fact)) lines += fmt::format("  {}: {}{}\n", key, amount(fact, m_.at(fact)), key_of(fact));
    lines += behind;
    const bool values = std::any_of(keys.begin(), keys.end(), [&](const auto& one) { return m_.says(one.second); }) ||
                        behind.find("rates:") != std::string::npos;
    return lines.empty() ? "" : values ? fmt::format("{}:\n{}", name, lines) : lines;
  }

  const MachineFacts& m_;
  const Gpu& base_;
  const std::string& file_;
};

}  // namespace

Translation translated(const MachineFacts& machine, const std::string& file) {
  const Gpu base = nearest(machine, file);
  const auto is_valid = [&](const MachineFacts& facts) {
    const std::string chip = Writer(facts, base, file).chip();
    try {
      if (!chip.empty()) (void)gpu_from_yaml(chip, file);
      return true;
    } catch (const UserError&) {
      return false;
    }
  };
  if (!is_valid(machine)) {
    MachineFacts outside = machine;
    for (const Fact inside : {Fact::l1_and_shared, Fact::shared, Fact::registers, Fact::warps})
      if (const auto found = outside.facts.find(inside); found != outside.facts.end()) {
        outside.unread.push_back(found->second.key);
        outside.facts.erase(found);
      }
    outside.notes.emplace_back(
        "the sizes inside of an SM are the base's: the file's contradict those that it leaves out");
    if (outside.facts.size() < machine.facts.size()) return translated(outside, file);
  }
  Writer writer(machine, base, file);
  Translation result{base.name, writer.chip(), writer.cluster()};
  if (!result.chip.empty()) (void)gpu_from_yaml(result.chip, file);
  if (!result.cluster.empty()) (void)cluster_from_yaml(result.cluster, file);
  return result;
}

}  // namespace ridgeline::other_simulators
