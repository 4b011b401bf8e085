// A problem made of launches whose kernel is known and whose law takes its constants as an argument.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fit/problem.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline::fit {

/// The place of a constant in its struct.
template <class Constants>
struct Place {
  const char* name;
  double& (*of)(Constants&);
};

/// A launch whose time was measured, with what the L2 holds of its accesses.
struct TimedLaunch {
  KernelLaunch launch;
  std::vector<double> residency;
  std::vector<KernelLaunch> others{};  ///< of the same grid, one of which may have run instead: the fastest did
  const Gpu* gpu = nullptr;            ///< beside which it was measured, where it is not the laboratory's
};

template <class Constants>
struct Law {
  std::vector<Place<Constants>> places;
  double (*seconds)(const TimedLaunch& timed, const Gpu& gpu, const Constants& constants);
};

template <class Constants>
Constants constants_from(const std::vector<Place<Constants>>& places, const Values& values) {
  Constants result;
  std::size_t set = 0;
  for (const auto& place : places)
    if (const auto found = values.find(place.name); found != values.end()) {
      place.of(result) = found->second;
      ++set;
    }
  if (set != values.size()) throw std::logic_error("a constant that the law does not have");
  return result;
}

/// The launches of each class with their observations, on the way to problems.
using Collected = std::map<std::string, std::pair<std::vector<Observation>, std::vector<TimedLaunch>>>;

template <class Constants>
std::vector<Problem> problems_of(Collected collected, const Law<Constants>& law, const Gpu& gpu) {
  std::vector<Problem> result;
  for (auto& [name, both] : collected) {
    auto launches = std::make_shared<const std::vector<TimedLaunch>>(std::move(both.second));
    result.push_back(
        {name, std::move(both.first),
         [law, launches, &gpu](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
           const Constants constants = constants_from(law.places, values);
           for (std::size_t i = 0; i < which.size(); ++i) {
             const TimedLaunch& timed = (*launches)[which[i]];
             seconds[i] = law.seconds(timed, timed.gpu != nullptr ? *timed.gpu : gpu, constants);
           }
         }});
  }
  return result;
}

}  // namespace ridgeline::fit
