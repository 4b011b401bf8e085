#include "sim/serve/newest.h"

#include <gtest/gtest.h>

#include "sim/answer/step_run.h"

namespace ridgeline::serve {
namespace {

TEST(Newest, a_later_question_stops_the_earlier_ones_of_its_client_alone) {
  Newest newest;
  const std::stop_source first = newest.begin("a", 1), other = newest.begin("b", 1);
  const std::stop_source second = newest.begin("a", 2);
  EXPECT_TRUE(first.stop_requested());
  EXPECT_FALSE(second.stop_requested());
  EXPECT_FALSE(other.stop_requested());
  EXPECT_THROW(newest.begin("a", 1), Cancelled);
  EXPECT_FALSE(second.stop_requested());
}

TEST(Newest, clients_that_asked_long_ago_are_forgotten) {
  Newest newest;
  const std::stop_source first = newest.begin("a", 9);
  for (std::size_t i = 0; i < Newest::kMostClients; ++i) newest.begin("client " + std::to_string(i), 1);
  EXPECT_NO_THROW(newest.begin("a", 1));
}

}  // namespace
}  // namespace ridgeline::serve
