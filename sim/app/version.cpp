#include "sim/app/version.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <tbb/version.h>

#include <CLI/CLI.hpp>
#include <Eigen/Core>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>

#include "revision.h"

namespace ridgeline::app {

std::string tool_and_revision() { return fmt::format("{}, revision {}", kProgramAndVersion, RIDGELINE_REVISION); }

std::string version_text() {
  return fmt::format(
      "{}\nrevision {}\nBoost {}.{}, CLI11 {}, Eigen {}.{}.{}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, oneTBB {}.{}, "
      "simdjson {}.{}.{}",
      kProgramAndVersion, RIDGELINE_REVISION, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, CLI11_VERSION,
      EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
      FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      TBB_VERSION_MAJOR, TBB_VERSION_MINOR, int{simdjson::SIMDJSON_VERSION_MAJOR},
      int{simdjson::SIMDJSON_VERSION_MINOR}, int{simdjson::SIMDJSON_VERSION_REVISION});
}

}  // namespace ridgeline::app
