// ridgeline_search: random searches for what no chip, network or setting may do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <random>

#include "tests/invariants/run_search.h"

namespace ridgeline::invariants {
namespace {

struct Options {
  std::uint64_t seed = std::random_device{}();
  std::uint64_t count = 0, first = 0;
  std::int64_t only_case = -1;
  std::size_t show = 2;
  unsigned processes = 1;
  bool refusals = false;
  std::vector<std::string> only;
  std::string engine;
};

std::uint64_t run_one(const Search& search, const Options& options) {
  const CaseOptions of_case{options.seed, options.engine, options.only_case >= 0};
  const auto begin = std::chrono::steady_clock::now();
  SearchResult result;
  if (options.only_case >= 0) {  // in this process, for a debugger
    const auto index = static_cast<std::uint64_t>(options.only_case);
    const CaseResult one = search.run(of_case, index);
    result.cases = 1;
    for (const std::string& name : one.compared) ++result.compared[name];
    for (const std::string& message : one.refused) ++result.refusals[message];
    result.refused = one.refused.size();
    for (const Finding& finding : one.findings) result.found.push_back({index, finding});
  } else {
    result =
        run_search(search, of_case, options.first, options.count ? options.count : search.count, options.processes);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  fmt::print("{}", search_text(search, result, options.seed, options.show));
  if (options.refusals)
    for (const auto& [message, times] : result.refusals) fmt::print("  refused {} times: {}\n", times, message);
  fmt::print("  {:.1f} s\n\n", spent.count());
  return result.found.size();
}

}  // namespace
}  // namespace ridgeline::invariants

int main(int argc, char** argv) {
  using namespace ridgeline::invariants;
  Options options;
  CLI::App program("Random searches for what no chip, network or setting may do; exit 1 where something is found.");
  program.add_option("--seed", options.seed, "of everything that is drawn (default: a new one)");
  program.add_option(
      "--count", options.count,
      "cases of each search (default: pairs 5000, axes 400, twice 96, file 240, random 5000, gpus 2000)");
  program.add_option("--first", options.first, "number of the first case");
  program.add_option("--only", options.only, "searches: pairs, axes, twice, file, random, gpus (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"pairs", "axes", "twice", "file", "random", "gpus"}));
  program.add_option("--engine", options.engine, "analytic, simulate or roofline (default: drawn, mostly analytic)")
      ->check(CLI::IsMember({"analytic", "simulate", "roofline"}));
  program.add_option("--threads", options.processes, "processes that share the cases");
  program.add_option("--case", options.only_case, "this case alone, in this process; its questions are printed");
  program.add_option("--show", options.show, "findings of each kind to print in full, largest first");
  program.add_flag("--refusals", options.refusals, "print why questions could not be asked");
  CLI11_PARSE(program, argc, argv);
  std::uint64_t findings = 0;
  for (const Search& search : kSearches)
    if (options.only.empty() || std::find(options.only.begin(), options.only.end(), search.name) != options.only.end())
      findings += run_one(search, options);
  return findings == 0 ? 0 : 1;
}
