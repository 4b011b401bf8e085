// What goes into a refit and what comes out of it, as files.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/keys.h"
#include "sim/input/json_depth.h"
#include "sim/input/lines.h"
#include "sim/kernels/lowering.h"
#include "sim/study/calibration/refit_gpu.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using nlohmann::json;

constexpr std::size_t kFewest = 50;    ///< rows that nine factors and five folds need
constexpr std::size_t kMostTold = 10;  ///< bad lines named in one message

TimedCase timed_case(std::string_view text, const Lowering& lowering) {
  check_json_depth(text);
  const json row = json::parse(text);
  if (!row.is_object()) throw UserError("not a JSON object");
  if (!row.contains("us") || !row["us"].is_number() || row["us"].get<double>() <= 0.0)
    throw UserError("us, the measured microseconds, is missing or not a positive number");
  TimedCase result;
  result.kernel = kernel_case_from(row);
  result.family = family_of(result.kernel.op);
  result.measured = microseconds(row["us"].get<double>());
  result.shape = hash_of(json{{"op", row["op"]}, {"params", row["params"]}}.dump());
  (void)lowering.lower(result.kernel.op);  // throws where this GPU has no such unit
  return result;
}

/// A number as a file states it, to six digits: "1.13501 us".
std::string stated(const HardwareKey& key, const Gpu& gpu) {
  const std::string shown = key.show(gpu), unit = shown.substr(std::min(shown.size(), shown.find(' ')));
  const auto one = parse_measure("1" + unit);
  return fmt::format("{:.6g}{}", key.get(gpu) / (one ? one->value : 1.0), one ? unit : "");
}

/// Values under dotted keys, as nested mappings of YAML.
struct Tree {
  std::map<std::string, Tree> under;
  std::string value;
  void put(std::string_view key, const std::string& text) {
    const std::size_t dot = key.find('.');
    Tree& next = under[std::string(key.substr(0, dot))];
    if (dot == std::string_view::npos) next.value = text;
    else next.put(key.substr(dot + 1), text);
  }
  void write(std::string& out, const std::string& indent) const {
    for (const auto& [key, tree] : under) {
      out += fmt::format("{}{}:{}\n", indent, key, tree.value.empty() ? "" : " " + tree.value);
      tree.write(out, indent + "  ");
    }
  }
};

}  // namespace

std::vector<TimedCase> read_timed_cases(const std::string& file, const Gpu& gpu, const Software& software) {
  const Lowering lowering(gpu, software);
  std::vector<TimedCase> cases;
  std::string wrong;
  std::size_t number = 0, mistakes = 0;
  for_each_line(file, [&](std::string_view text) {
    ++number;
    const auto tell = [&](std::string_view what) {
      if (++mistakes <= kMostTold) wrong += fmt::format("{}{}:{}: {}", wrong.empty() ? "" : "\n", file, number, what);
    };
    try {
      cases.push_back(timed_case(text, lowering));
    } catch (const json::exception&) {
      tell("not a JSON object");
    } catch (const UserError& e) {
      tell(e.what());
    } catch (const std::invalid_argument& e) {
      tell(e.what());
    }
  });
  if (mistakes > kMostTold) wrong += fmt::format("\n{}: {} more lines like these", file, mistakes - kMostTold);
  if (mistakes > 0) throw UserError(wrong);
  if (cases.size() < kFewest)
    throw UserError(fmt::format("{}: {} rows; a refit needs {} at least (tools/measure_kernels.py measures 500)", file,
                                cases.size(), kFewest));
  return cases;
}

std::string refit_yaml(const RefitResult& result, const Gpu& before, const std::string& base,
                       const std::string& measured) {
  Tree tree;
  for (const FittedNumber& number : result.numbers) {
    if (!number.settled) continue;
    for (const std::string_view name : number.tied->keys) {
      const HardwareKey& key = *find_hardware_key(name);
      if (key.get(before) == 0.0) continue;
      tree.put(name, fmt::format("{{value: {}, source: \"{:.3f} times that of {}: fitted on {} operations of {} "
                                 "(ridgeline refit)\", spread: {:.1f} %}}",
                                 stated(key, result.gpu), number.factor, base, result.errors.front().before.n, measured,
                                 number.deviation));
    }
  }
  std::string out = fmt::format(
      "# Written by ridgeline refit. Mean error of operations that a fit did not see: {:.1f} %, {:.1f} % before.\n"
      "title: {}, refitted\nextends: {}\n",
      result.errors.front().unseen.mean, result.errors.front().before.mean, before.title, base);
  tree.write(out, "");
  return out;
}

}  // namespace ridgeline
