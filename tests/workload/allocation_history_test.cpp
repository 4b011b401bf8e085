// The allocations and frees of a generated run against those PyTorch made: every one, of its size, in its place.
//
// Compared is what the program itself asks for. Left out on both sides is what one operation takes and gives back at
// once (a library's scratch memory), the libraries' lasting workspaces, and what the measuring script allocated before
// the model. Frees between two allocations are compared as a set: the cache of autocast is dropped in the order of a
// hash of addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/support/measured_runs.h"

namespace ridgeline {
namespace {

struct Event {
  bool allocation;
  std::size_t number;  ///< of the allocation, in order of allocation
  std::int64_t bytes;
};
using Events = std::vector<Event>;

Events recorded_events(const std::string& path) {
  Events events;
  std::map<std::string, std::size_t> live;  // address to number
  std::vector<std::int64_t> sizes;
  std::istringstream lines(testing::unzipped(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string action, address, size;
    std::getline(fields, action, ',');
    std::getline(fields, address, ',');
    std::getline(fields, size, ',');
    if (action == "alloc") {
      live[address] = sizes.size();
      events.push_back({true, sizes.size(), std::stoll(size)});
      sizes.push_back(std::stoll(size));
    } else if (action == "free_requested") {
      events.push_back({false, live.at(address), sizes[live.at(address)]});
    }
  }
  return events;
}

Events generated_events(const OpTrace& trace) {
  Events events;
  for (const Record& record : trace.records) {
    const bool allocation = record.kind == Record::Kind::allocate;
    if (allocation || record.kind == Record::Kind::free)
      events.push_back({allocation, record.index, trace.storages[record.index].bytes});
  }
  return events;
}

/// From the first weight on; what was allocated before it is forgotten.
Events from_first_weight(const Events& events, std::int64_t first_weight) {
  Events result;
  std::vector<std::size_t> before;
  bool begun = false;
  for (const Event& event : events) {
    begun = begun || (event.allocation && event.bytes == first_weight);
    if (!begun) before.push_back(event.number);
    else if (event.allocation || std::find(before.begin(), before.end(), event.number) == before.end())
      result.push_back(event);
  }
  return result;
}

/// The first lasting 32 MiB of each thread, and its first lasting 1 MiB after a product with a bias.
Events without_workspaces(const Events& events, int small_workspaces) {
  constexpr std::int64_t kWorkspace = 32 << 20, kSmall = 1 << 20;
  std::vector<bool> freed(events.size(), false);
  for (const Event& event : events)
    if (!event.allocation) freed[event.number] = true;
  Events result;
  int workspaces = 0;
  for (const Event& event : events) {
    const bool lasting = event.allocation && !freed[event.number];
    if (lasting && event.bytes == kWorkspace) {
      ++workspaces;
    } else if (lasting && event.bytes == kSmall && workspaces > 0 && small_workspaces > 0) {
      --small_workspaces;
    } else {
      result.push_back(event);
    }
  }
  EXPECT_EQ(workspaces, 2);
  return result;
}

Events without_scratch(const Events& events) {
  Events result;
  for (const Event& event : events) {
    const bool at_once =
        !event.allocation && !result.empty() && result.back().allocation && result.back().number == event.number;
    if (at_once) result.pop_back();
    else result.push_back(event);
  }
  return result;
}

/// Numbers anew in order of allocation; each run of frees sorted.
Events canonical(Events events) {
  std::map<std::size_t, std::size_t> number;
  for (Event& event : events) {
    if (event.allocation) number.emplace(event.number, number.size());
    event.number = number.at(event.number);
  }
  for (auto from = events.begin(); from != events.end();) {
    const auto to = std::find_if(from, events.end(), [&](const Event& e) { return e.allocation; });
    std::sort(from, to, [](const Event& a, const Event& b) { return a.number < b.number; });
    from = to == events.end() ? to : to + 1;
  }
  return events;
}

void expect_same(const Events& expected, const Events& actual, const std::string& name) {
  EXPECT_EQ(expected.size(), actual.size()) << name;
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    const Event &a = expected[i], &b = actual[i];
    if (a.allocation == b.allocation && a.number == b.number && a.bytes == b.bytes) continue;
    FAIL() << name << ": event " << i << " of " << expected.size() << " is " << (a.allocation ? "allocate " : "free ")
           << a.number << " of " << a.bytes << " bytes, predicted " << (b.allocation ? "allocate " : "free ")
           << b.number << " of " << b.bytes;
  }
}

TEST(AllocationHistory, Every_allocation_and_free_of_the_first_two_steps_is_the_one_PyTorch_made) {
  int histories = 0;
  for (const testing::MeasuredRun& run : testing::measured_runs()) {
    const auto path = run.recorded("allocations", ".csv.gz");
    if (!path) continue;
    ++histories;
    const OpTrace trace = run.trace();
    const auto weight = std::find_if(trace.storages.begin(), trace.storages.end(),
                                     [](const Storage& s) { return s.category == Category::weights; });
    ASSERT_NE(weight, trace.storages.end());
    // The small workspace belongs to products with a bias: forward, and on the other thread when a block is run again.
    const bool biased = run.scenario.model.bias;
    const bool twice = run.scenario.training.activation_checkpointing == ActivationCheckpointing::block;
    const Events recorded = without_workspaces(recorded_events(*path), biased ? (twice ? 2 : 1) : 0);
    expect_same(canonical(without_scratch(from_first_weight(recorded, weight->bytes))),
                canonical(without_scratch(from_first_weight(generated_events(trace), weight->bytes))), run.name);
  }
  EXPECT_EQ(histories, 23);
}

}  // namespace
}  // namespace ridgeline
