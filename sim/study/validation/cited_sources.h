// Published measurements that the description of a GPU rests on: what such a row tests is not unseen.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace ridgeline {

/// The project of a published row's source: "NeuSight" of "sitar-lab/NeuSight@6945927:data/x.csv". Empty for addresses.
std::string project_of(std::string_view source);

/// What the numbers of hw/NAME.yaml give as their sources.
class CitedSources {
 public:
  explicit CitedSources(const std::string& hardware);
  /// Why a published time from `source` is not unseen, in words; empty where the file does not cite it. A file that
  /// cites "public" products without a name counts as citing all of them.
  [[nodiscard]] std::string seen_by(std::string_view source, std::string_view family) const;

 private:
  std::string file_;
  std::set<std::string, std::less<>> texts_;  ///< of all its sources
};

}  // namespace ridgeline
