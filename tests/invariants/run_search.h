// Runs the cases of a search in processes of their own, so that a crash is a finding and not the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/invariants/finding.h"

namespace ridgeline::invariants {

struct SearchResult {
  std::uint64_t cases = 0, refused = 0;
  std::map<std::string, std::uint64_t> compared;
  std::map<std::string, std::uint64_t> refusals;  ///< by the first words of the message
  struct Found {
    std::uint64_t index;
    Finding finding;
  };
  std::vector<Found> found;
};

/// Cases `first` to before `first + count`, on `processes` processes.
SearchResult run_search(const Search& search, const CaseOptions& options, std::uint64_t first, std::uint64_t count,
                        unsigned processes);

/// Tables of what was compared and found; the `most` largest findings of each kind in full.
std::string search_text(const Search& search, const SearchResult& result, std::uint64_t seed, std::size_t most);

}  // namespace ridgeline::invariants
