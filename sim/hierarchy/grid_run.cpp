#include "sim/hierarchy/grid_run.h"

#include "sim/hierarchy/dram_queue.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

/// (a^p + b^p)^(1/p)
Ticks rounded_maximum(Ticks a, Ticks b, double p) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  const auto most = static_cast<double>(std::max(a, b));
  const double less = static_cast<double>(std::min(a, b)) / most;
  const double sum =
      p == 4.0 ? std::sqrt(std::sqrt(1.0 + less * less * less * less)) : std::pow(1.0 + std::pow(less, p), 1.0 / p);
  return std::llround(most * sum);
}

class Grid {
 public:
  Grid(const GridPlan& plan, const DramSpec& dram, bool each_sm) : plan_(plan), dram_(dram, plan.stretch) {
    const int width = each_sm || !plan.lengths.empty() ? 1 : plan.sms;
    for (int first = 0; first < plan.sms; first += width) {
      Class c;
      c.first = first;
      c.sms = std::min(width, plan.sms - first);
      c.slots.resize(static_cast<std::size_t>(plan.slots));
      classes_.push_back(std::move(c));
    }
    for (int slot = 0; slot < plan.slots; ++slot)
      for (std::uint32_t c = 0; c < classes_.size(); ++c)
        events_.announce(plan.start + slot * plan.dispatch, {c, static_cast<std::uint32_t>(slot), Happens::slot_free});
  }

  GridRun run() {
    while (!events_.empty()) {
      keep_budget_often("simulating the blocks of a kernel");
      const Ticks now = events_.time();
      free_.clear();
      begin_.clear();
      while (!events_.empty() && events_.time() == now) happen(now, events_.take());
      place(now);
      for (const std::uint32_t sm : emptied_) {
        Class& c = classes_[sm];
        if (c.resident > 0 || c.active_since < 0) continue;
        result_.active.push_back({c.active_since, now, c.sms});
        c.active_since = -1;
      }
      emptied_.clear();
      begin_phases(now);
    }
    result_.dram_busy = dram_.busy();
    return std::move(result_);
  }

 private:
  enum class Happens : std::uint8_t { slot_free, phase_ends };
  struct Event {
    std::uint32_t sm = 0, slot = 0;  ///< class of SMs
    Happens what = Happens::slot_free;
  };
  struct Slot {
    std::int64_t block = -1;
    std::int32_t phase = 0;
    Ticks begin = 0;
  };
  /// SMs [first, first + sms), which are all alike.
  struct Class {
    int first = 0, sms = 0, resident = 0;
    Ticks active_since = -1;  ///< with at least one block; -1: without
    std::int64_t had = 0;
    std::vector<Slot> slots;
  };
  struct Place {
    std::uint32_t sm, slot;
  };

  [[nodiscard]] std::size_t cohort_of(std::int64_t block) const {
    return std::min(plan_.cohorts.size() - 1, static_cast<std::size_t>(block / plan_.cohort_blocks));
  }

  void happen(Ticks now, const Event& event) {
    Class& c = classes_[event.sm];
    if (event.what == Happens::slot_free) {
      free_.push_back({event.sm, event.slot});
      return;
    }
    Slot& slot = c.slots[event.slot];
    const std::size_t cohort = cohort_of(slot.block);
    result_.ran.push_back({slot.begin, now, c.sms, static_cast<std::int32_t>(cohort), slot.phase});
    result_.end = std::max(result_.end, now);
    if (static_cast<std::size_t>(++slot.phase) < plan_.cohorts[cohort].size()) {
      begin_.push_back({event.sm, event.slot});
      return;
    }
    slot.block = -1;
    if (--c.resident == 0) emptied_.push_back(event.sm);
    if (plan_.replacement > 0) events_.announce(now + plan_.replacement, {event.sm, event.slot, Happens::slot_free});
    else free_.push_back({event.sm, event.slot});
  }

  /// One block to an SM in turn, the emptiest and of them the first SM first.
  void place(Ticks now) {
    while (next_ < plan_.blocks && !free_.empty()) {
      auto best = free_.begin();
      for (auto at = free_.begin() + 1; at < free_.end(); ++at) {
        const Class &a = classes_[at->sm], &b = classes_[best->sm];
        if (a.resident != b.resident ? a.resident < b.resident
            : a.first != b.first     ? a.first < b.first
                                     : at->slot < best->slot)
          best = at;
      }
      const Place place = *best;
      free_.erase(best);
      // As many of the class' SMs as there are blocks left, of one cohort.
      const std::int64_t of_cohort = cohort_of(next_) + 1 < plan_.cohorts.size()
                                         ? (next_ / plan_.cohort_blocks + 1) * plan_.cohort_blocks - next_
                                         : plan_.blocks - next_;
      const std::int64_t count = std::min({of_cohort, plan_.blocks - next_, std::int64_t{classes_[place.sm].sms}});
      if (count < classes_[place.sm].sms) split(place, static_cast<int>(count));
      Class& c = classes_[place.sm];
      Slot& slot = c.slots[place.slot];
      slot = {next_, 0, now};
      next_ += count;
      if (c.active_since < 0) c.active_since = now;
      ++c.resident;
      result_.most_on_an_sm = std::max(result_.most_on_an_sm, ++c.had);
      begin_.push_back(place);
    }
  }

  /// The SMs beyond the first `count` of a class become one of their own; what it has ahead of it is announced twice.
  void split(const Place& place, int count) {
    const auto made = static_cast<std::uint32_t>(classes_.size());
    Class rest = classes_[place.sm];
    rest.first += count;
    rest.sms -= count;
    classes_[place.sm].sms = count;
    classes_.push_back(std::move(rest));
    events_.repeat([&](const Event& event) { return event.sm == place.sm; },
                   [&](Event event) {
                     event.sm = made;
                     return event;
                   });
    const auto repeat = [&](std::vector<Place>& list) {
      const std::size_t before = list.size();
      for (std::size_t i = 0; i < before; ++i)
        if (list[i].sm == place.sm) list.push_back({made, list[i].slot});
    };
    for (std::size_t i = 0, before = emptied_.size(); i < before; ++i)
      if (emptied_[i] == place.sm) emptied_.push_back(made);
    repeat(free_);
    repeat(begin_);
    free_.push_back({made, place.slot});
  }

  void begin_phases(Ticks now) {
    std::int64_t read = 0, written = 0;
    for (const Place& place : begin_) {
      const Class& c = classes_[place.sm];
      const BlockPhase& phase = phase_of(c.slots[place.slot]);
      read += phase.read * c.sms;
      written += phase.write * c.sms;
    }
    const Ticks wait = read + written > 0 ? dram_.serve(now, read, written) - now : 0;
    for (const Place& place : begin_) {
      Class& c = classes_[place.sm];
      Slot& slot = c.slots[place.slot];
      slot.begin = now;
      const BlockPhase& phase = phase_of(slot);
      const std::size_t sharing = std::min(static_cast<std::size_t>(c.resident), plan_.alone.size());
      double own = static_cast<double>(plan_.alone[sharing - 1]) * phase.work;
      if (!plan_.lengths.empty()) own *= plan_.lengths[static_cast<std::size_t>(slot.block) % plan_.lengths.size()];
      const Ticks ticks = rounded_maximum(std::llround(own), phase.read + phase.write > 0 ? wait : 0, plan_.overlap);
      events_.announce(now + std::max<Ticks>(1, ticks), {place.sm, place.slot, Happens::phase_ends});
    }
  }

  [[nodiscard]] const BlockPhase& phase_of(const Slot& slot) const {
    return plan_.cohorts[cohort_of(slot.block)][static_cast<std::size_t>(slot.phase)];
  }

  const GridPlan& plan_;
  DramQueue dram_;
  EventQueue<Event> events_;
  std::vector<Class> classes_;
  std::vector<Place> free_, begin_;     ///< of the moment
  std::vector<std::uint32_t> emptied_;  ///< classes whose last block has left at this moment
  std::int64_t next_ = 0;
  GridRun result_;
};

}  // namespace

GridRun run_grid(const GridPlan& plan, const DramSpec& dram, bool each_sm) { return Grid(plan, dram, each_sm).run(); }

}  // namespace ridgeline
