// A sample of every random search, with other cases each day: RIDGELINE_SEED repeats one, RIDGELINE_CASES takes more.
// ridgeline_search runs the same searches in full and prints how to repeat what it finds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "tests/invariants/run_search.h"

namespace ridgeline::invariants {
namespace {

std::uint64_t seed_of_today() {
  if (const char* given = std::getenv("RIDGELINE_SEED")) return std::strtoull(given, nullptr, 10);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::hours>(now).count()) / 24;
}

struct Sample {
  const char* search;
  std::uint64_t cases;
  double known;  ///< share of the cases in which something is known to be found: measurements/DEVIATIONS.md
};

class Searches : public ::testing::TestWithParam<Sample> {};

TEST_P(Searches, find_no_more_than_is_known) {
  const Sample sample = GetParam();
  const char* more = std::getenv("RIDGELINE_CASES");
  const std::uint64_t count = more ? std::strtoull(more, nullptr, 10) : sample.cases;
  for (const Search& search : kSearches) {
    if (search.name != sample.search) continue;
    const std::uint64_t seed = seed_of_today();
    RecordProperty("seed", std::to_string(seed));
    const SearchResult result = run_search(search, {.seed = seed, .engine = {}}, 0, count, 1);
    const std::string text = search_text(search, result, seed, 3);
    std::printf("%s", text.c_str());
    EXPECT_GE(result.cases, count - result.found.size());
    std::uint64_t compared = 0;
    for (const auto& [name, times] : result.compared) compared += times;
    EXPECT_GE(compared, result.cases) << "questions that could not be asked";
    for (const SearchResult::Found& found : result.found)
      EXPECT_FALSE(found.finding.kind.starts_with("crash") || found.finding.kind.starts_with("NaN")) << text;
    std::set<std::uint64_t> cases_with_findings;
    for (const SearchResult::Found& found : result.found) cases_with_findings.insert(found.index);
    EXPECT_LE(static_cast<double>(cases_with_findings.size()), sample.known * static_cast<double>(count)) << text;
  }
}
INSTANTIATE_TEST_SUITE_P(OfToday, Searches,
                         ::testing::Values(Sample{"pairs", 250, 0.0}, Sample{"axes", 24, 0.042},
                                           Sample{"twice", 96, 0.0}, Sample{"file", 60, 0.0},
                                           Sample{"random", 250, 0.0}, Sample{"gpus", 120, 0.009}),
                         [](const auto& sample) { return std::string(sample.param.search); });

}  // namespace
}  // namespace ridgeline::invariants
