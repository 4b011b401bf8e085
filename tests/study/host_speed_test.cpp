// How fast the host of a measured step was, by what it took for clipping, optimizer and zeroing.
#include "sim/study/validation/host_speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/session.h"

namespace ridgeline {
namespace {

/// Like hw/hosts/default.yaml: nine in ten hosts between these scales.
Host host_of_any_speed() {
  Host host;
  host.known = false;
  host.least_scale = 1.0;
  host.most_scale = 2.8;
  return host;
}

TEST(HostSpeed, LiesBetweenItsReadingAndTheMiddleOfTheHostsSeen) {
  const double middle = std::sqrt(2.8);
  EXPECT_NEAR(likely_scale(middle, host_of_any_speed()).scale, middle, 1e-12);
  const LikelyScale slow = likely_scale(2.5, host_of_any_speed());
  EXPECT_GT(slow.scale, 2.0);
  EXPECT_LT(slow.scale, 2.5);
  // By hand: ln 2.8 / 3.29 = 0.313 is the deviation of hosts, 0.17 that of a reading.
  const double weight = 0.313 * 0.313 / (0.313 * 0.313 + 0.17 * 0.17);
  EXPECT_NEAR(slow.scale, middle * std::pow(2.5 / middle, weight), 1e-3);
  EXPECT_NEAR(slow.spread, 1.645 * 0.17 * std::sqrt(weight), 1e-3);
  EXPECT_LT(likely_scale(1.0, host_of_any_speed()).scale, likely_scale(1.1, host_of_any_speed()).scale);
}

Scenario compiled_bert(const char* precision) {
  ScenarioSource source;
  source.text = nlohmann::json{{"hardware", "nvidia-h200-sxm-141gb"},
                               {"model",
                                {{"family", "bert"},
                                 {"layers", 2},
                                 {"heads", 2},
                                 {"hidden", 128},
                                 {"feed_forward", 512},
                                 {"vocabulary", 1000},
                                 {"max_positions", 128}}},
                               {"training",
                                {{"micro_batch", 2},
                                 {"sequence_length", 64},
                                 {"precision", precision},
                                 {"compile", true},
                                 {"gradient_clipping", 1.0},
                                 {"optimizer", {{"name", "adamw"}, {"implementation", "foreach"}}}}}}
                    .dump();
  return load_scenario(source);
}

/// Milliseconds of a part with a cost of its own and one for each of 41 tensors, on the default host at scale 1.
double list_ms(const Host& host, HostClass fixed, HostClass each) {
  const auto cost = [&](HostClass one) { return host.class_costs[static_cast<std::size_t>(one)].value(); };
  return 1e3 * (cost(fixed) + 41.0 * cost(each));
}

TEST(HostSpeed, IsWhatClippingOptimizerAndZeroingTookOverWhatTheyCost) {
  Session session;
  const Scenario scenario = compiled_bert("amp-bf16");
  const Host& host = scenario.host;
  const double zero = 41e3 * host.class_costs[static_cast<std::size_t>(HostClass::per_parameter_zero_grad)].value();
  const nlohmann::json twice_as_slow{
      {"forward", 99.0},
      {"backward", 0.1},
      {"clip", 2.0 * list_ms(host, HostClass::clip_fixed, HostClass::per_parameter_clip)},
      {"optimizer", 2.0 * list_ms(host, HostClass::foreach_fixed, HostClass::per_parameter_foreach)},
      {"zero_grad", 2.0 * zero}};
  EXPECT_NEAR(scale_of_lists(session, scenario, twice_as_slow), 2.0, 0.02);
}

TEST(HostSpeed, IsNotReadFromAnOptimizerThatWaitsForTheGpu) {
  Session session;
  const Scenario scenario = compiled_bert("amp-fp16");
  nlohmann::json parts{{"clip", 1.2}, {"optimizer", 1.0}, {"zero_grad", 0.1}};
  const double reading = scale_of_lists(session, scenario, parts);
  parts["optimizer"] = 5.0;
  EXPECT_EQ(scale_of_lists(session, scenario, parts), reading);
  parts["clip"] = 2.4;
  parts["zero_grad"] = 0.2;
  EXPECT_NEAR(scale_of_lists(session, scenario, parts), 2.0 * reading, 1e-9);
}

}  // namespace
}  // namespace ridgeline
