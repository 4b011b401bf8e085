// Blocks that share SMs, against a simulation which looks at every block at every event.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/timing/block_schedule.h"

namespace ridgeline {
namespace {

struct Running {
  std::size_t block = 0;
  double left = 1.0;  // share of its work
};

/// Whatever two SMs do at the same time, the first of them does first: costs must differ. First blocks in order,
/// further ones of the first round with a stride that is prime to the SMs; then each goes to the SM on which one ends.
double slow_end(const std::vector<double>& alone, const std::vector<double>& more, std::size_t blocks, std::size_t sms,
                std::size_t resident) {
  std::vector<std::vector<Running>> on(sms);
  std::size_t started = 0;
  const auto start = [&](std::size_t sm) { on[sm].push_back({started++ % alone.size(), 1.0}); };
  std::size_t stride = static_cast<std::size_t>(0.46 * static_cast<double>(sms)) + 1;
  while (std::gcd(stride, sms) != 1) ++stride;
  for (std::size_t round = 0; round < resident; ++round)
    for (std::size_t i = 0; i < sms && started < blocks; ++i) start(round == 0 ? i : (i * stride + 29 * round) % sms);
  const auto cost = [&](std::size_t sm, const Running& one) {
    return alone[one.block] + static_cast<double>(on[sm].size() - 1) * more[one.block];
  };
  double now = 0.0;
  while (true) {
    double step = 1e300;
    for (std::size_t sm = 0; sm < sms; ++sm)
      for (const Running& one : on[sm]) step = std::min(step, one.left * cost(sm, one));
    if (step == 1e300) return now;
    now += step;
    for (std::size_t sm = 0; sm < sms; ++sm) {
      std::vector<Running> kept;
      std::size_t ended = 0;
      for (const Running& one : on[sm]) {
        const double left = one.left - step / cost(sm, one);
        if (left > 1e-9) kept.push_back({one.block, left});
        else ++ended;
      }
      on[sm] = kept;
      for (; ended > 0 && started < blocks; --ended) start(sm);
    }
  }
}

TEST(SharedSchedule, ends_when_a_simulation_of_every_block_does) {
  std::mt19937_64 random(20261202);
  std::uniform_real_distribution<double> cost(1.0, 10.0);
  for (const std::size_t length : {1, 2, 7, 30, 61, 120})
    for (const int sms : {1, 2, 5, 12, 13})
      for (const int resident : {2, 3, 4}) {
        if (length > static_cast<std::size_t>(4 * sms * resident)) continue;
        std::vector<double> alone(length), more(length);
        for (std::size_t i = 0; i < length; ++i) alone[i] = cost(random), more[i] = 0.3 * cost(random);
        const double slow =
            slow_end(alone, more, length, static_cast<std::size_t>(sms), static_cast<std::size_t>(resident));
        EXPECT_NEAR(shared_schedule_end(alone, more, 1, sms, resident), slow, 1e-6 * slow)
            << length << " on " << sms << " x " << resident;
      }
}

TEST(SharedSchedule, a_list_that_repeats_begins_anew) {
  const std::vector<double> alone{2.0, 5.0, 3.0}, more{1.0, 0.5, 2.0};
  for (const int repeats : {1, 2, 3, 4})
    for (const int resident : {3, 4}) {
      const std::size_t blocks = 3 * static_cast<std::size_t>(repeats);
      const double slow = slow_end(alone, more, blocks, 1, static_cast<std::size_t>(resident));
      EXPECT_NEAR(shared_schedule_end(alone, more, repeats, 1, resident), slow, 1e-6 * slow) << repeats;
    }
}

TEST(SharedSchedule, many_rounds_are_the_load_of_full_sms) {
  const std::vector<double> alone{2.0, 4.0}, more{1.0, 3.0};
  // Full SMs: blocks of 3 and 7, on 2 x 2 slots; the mean load and 0.62 of the longest.
  EXPECT_NEAR(shared_schedule_end(alone, more, 100, 2, 2), 1000.0 / 4 + 0.62 * 7, 1e-9);
  EXPECT_NEAR(least_schedule_end(alone, more, 100, 2, 2), 250.0, 1e-9);
  EXPECT_EQ(shared_schedule_end({}, {}, 3, 4, 2), 0.0);
  EXPECT_EQ(shared_schedule_end(alone, more, 3, 0, 2), 0.0);
  EXPECT_EQ(latest_schedule_end({}, {}, 3, 4, 2), 0.0);
  EXPECT_EQ(latest_schedule_end(alone, more, 3, 0, 2), 0.0);
}

TEST(SharedSchedule, the_latest_end_is_no_later_than_any_that_is_tried) {
  std::mt19937_64 random(20261203);
  std::uniform_real_distribution<double> cost(1.0, 10.0);
  for (const int sms : {3, 20, 90})
    for (const int resident : {1, 2}) {
      std::vector<double> alone(6), more(6);
      for (std::size_t i = 0; i < 6; ++i) alone[i] = cost(random), more[i] = resident > 1 ? cost(random) : 0.0;
      double latest = 0.0;
      for (int count = sms; count <= std::max(sms, 120); ++count)
        latest = std::max(latest, shared_schedule_end(alone, more, 20, count, resident));
      EXPECT_NEAR(latest_schedule_end(alone, more, 20, sms, resident), latest, 1e-9) << sms << " " << resident;
    }
}

}  // namespace
}  // namespace ridgeline
