// Which launches the L2 has seen before a steady step begins.
#include "sim/timeline/step_launches.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

/// Steps of so many launches, each with host work beside it.
StepProgram program_of_steps(const std::vector<std::uint32_t>& launches) {
  StepProgram program;
  std::uint32_t next = 0;
  for (const std::uint32_t count : launches) {
    const auto begin = static_cast<std::uint32_t>(program.actions.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      program.actions.push_back({Action::Kind::host, HostClass::other, 0, 1, Action::kNoCall});
      program.actions.push_back({Action::Kind::launch, HostClass::other, 0, next++, Action::kNoCall});
    }
    program.steps.push_back({begin, static_cast<std::uint32_t>(program.actions.size())});
  }
  return program;
}

TEST(LaunchesBefore, AreTheLastOfTheStepsBefore) {
  for (const std::uint32_t before : {1u, 10u, 255u, 256u, 257u, 700u}) {
    const StepProgram program = program_of_steps({before, 20});
    const std::vector<const Action*> launches = launches_before(program);
    ASSERT_EQ(launches.size(), std::min(before, 256u));
    for (std::size_t i = 0; i < launches.size(); ++i) {
      EXPECT_EQ(launches[i]->kind, Action::Kind::launch);
      EXPECT_EQ(launches[i]->index, before - launches.size() + i);
    }
  }
}

TEST(LaunchesBefore, OfASingleStepAreItsOwn) {
  const StepProgram program = program_of_steps({30});
  const std::vector<const Action*> launches = launches_before(program);
  ASSERT_EQ(launches.size(), 30u);
  EXPECT_EQ(launches.front()->index, 0u);
  EXPECT_EQ(launches.back()->index, 29u);
}

}  // namespace
}  // namespace ridgeline
