// What a search finds: a case of it, and what is wrong there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::invariants {

/// A step counts as slower from so many times the time of before on.
inline constexpr double kSlower = 1.005;

struct Finding {
  std::string kind;   ///< what findings are counted by: "slower", "crash SIGFPE", "NaN in step.time" …
  std::string group;  ///< and, within it, the key or part at fault
  double size = 0;    ///< how far from what it should be, relative
  std::string text;   ///< how to repeat it, and what was seen
};

struct CaseResult {
  std::vector<std::string> compared;  ///< what was compared, by the names of groups
  std::vector<std::string> refused;   ///< messages of questions that cannot be asked
  std::vector<Finding> findings;
};

struct CaseOptions {
  std::uint64_t seed = 1;
  std::string engine;  ///< empty: drawn
  bool tell = false;   ///< prints each question before it is asked, for what ends the process
};

/// A search by its name; `count` is how many cases it takes where nobody says.
struct Search {
  std::string_view name, what;
  std::uint64_t count;
  CaseResult (*run)(const CaseOptions&, std::uint64_t index);
};

/// A better chip is never slower.
CaseResult better_chip(const CaseOptions& options, std::uint64_t index);
/// Along 20 steps of 5 % of a key, the time falls and does not jump.
CaseResult along_an_axis(const CaseOptions& options, std::uint64_t index);
/// A chip that does everything in half the time takes half the time.
CaseResult twice_the_chip(const CaseOptions& options, std::uint64_t index);
/// The same numbers by --set and in a file give the same bits.
CaseResult set_against_file(const CaseOptions& options, std::uint64_t index);
/// Whatever is asked: no crash, no NaN, nothing that physics forbids, and parts that add up.
CaseResult anything(const CaseOptions& options, std::uint64_t index);
/// The same over several GPUs, and a better network between them is never slower.
CaseResult several_gpus(const CaseOptions& options, std::uint64_t index);

inline constexpr Search kSearches[] = {
    {"pairs", "a better chip is not slower by more than 0.5 %", 5000, &better_chip},
    {"axes", "20 steps of 5 %: monotone within 0.5 %, no jump above 10 %", 400, &along_an_axis},
    {"twice", "everything twice as fast: half the GPU time within 3 %", 96, &twice_the_chip},
    {"file", "--set and a file: the same bits", 240, &set_against_file},
    {"random", "no crash, no NaN, physics", 5000, &anything},
    {"gpus", "several GPUs: the same, and better links are not slower by more than 0.5 %", 2000, &several_gpus},
};

}  // namespace ridgeline::invariants
