// Path and query of a request: "/api/predict?engine=analytic&set=training.micro_batch%3D8".
//
// Tested by tests/serve/target_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline::serve {

struct Target {
  std::string path;                                             ///< decoded
  std::vector<std::pair<std::string, std::string>> parameters;  ///< decoded, in their order

  /// The last of that name; empty where there is none.
  [[nodiscard]] std::string get(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  /// "1" or "true"; false for "0", "false" and where it is missing. Throws UserError for another value.
  [[nodiscard]] bool flag(std::string_view name) const;
  /// A whole number of 0 and above; throws UserError for anything else.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const;
  /// Throws UserError for a parameter that is not among `names`, with the nearest.
  void refuse_others(const std::vector<std::string>& names) const;
};

inline constexpr std::size_t kMostParameters = 256;

/// Throws UserError for what is no absolute path, a broken %-code, a control character or too many parameters.
Target parse_target(std::string_view text);

}  // namespace ridgeline::serve
