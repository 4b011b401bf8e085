#include "sim/timeline/token_launches.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/timeline/step_launches.h"

namespace ridgeline {

TokenLaunches::TokenLaunches(const StepProgram& program)
    : program_(program), trace_(*program.trace), loop_(*trace_.tokens), kernels_(*program.token_kernels) {
  const TokenLoop::Place& place = loop_.places.back();
  for (std::uint32_t i = place.body.begin; i < place.body.end; ++i)
    if (trace_.records[i].kind == Record::Kind::op) calls_.push_back(trace_.records[i].index);
  std::unordered_map<std::uint32_t, std::uint32_t> number_of;
  for (std::uint32_t i = 0; i < calls_.size(); ++i) number_of[calls_[i]] = i;
  written_.resize(calls_.size());
  const StepRange body = program.tokens.back().body;
  for (std::uint32_t i = body.begin; i < body.end; ++i)
    if (const Action& action = program.actions[i]; action.kind == Action::Kind::launch)
      written_[number_of.at(action.call)].push_back(&program.launches[action.index]);
  const std::vector<StorageId> before = births_in(trace_, place.before), own = births_in(trace_, place.body);
  births_ = static_cast<std::uint32_t>(std::max(before.size(), own.size()));
  for (std::uint32_t i = 0; i < before.size(); ++i) name_of_[before[i]] = {1, i};
  for (std::uint32_t i = 0; i < own.size(); ++i) name_of_[own[i]] = {0, i};
  for (const std::uint32_t call : calls_)  // those of no bytes are never born
    for (const Operand& operand : program.operands_of(call))
      if (trace_.storages[operand.storage].bytes == 0 &&
          name_of_.try_emplace(operand.storage, Birth{0, births_}).second)
        ++births_;
  find_shapes();
}

void TokenLaunches::operands(std::uint32_t call, std::int64_t token, std::vector<Operand>& out) const {
  out.clear();
  for (const Operand& operand : program_.operands_of(call)) {
    const auto found = name_of_.find(operand.storage);
    StorageId id = operand.storage;
    if (found != name_of_.end()) id = id_of(token - found->second.tokens_before, found->second.birth);
    out.push_back({id, operand.bytes});
  }
}

void TokenLaunches::find_shapes() {
  const auto tokens = static_cast<std::size_t>(loop_.tokens());
  const std::vector<std::uint32_t>& varying = loop_.varying_slots();
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> counts;
  shape_of_.reserve(tokens);
  for (std::size_t token = 0; token <= tokens; ++token) {  // last: the one that is written out
    counts.clear();
    for (std::size_t k = 0; k < varying.size(); ++k) {
      const auto note = [&](const KernelLaunch& one) { counts.push_back(one.follows_without_gap ? 2 : 1); };
      if (token < tokens)
        for (const KernelLaunch& one : kernels_.of(static_cast<std::int64_t>(token), k).launches) note(one);
      else
        for (const KernelLaunch* one : written_[first_call(varying[k])]) note(*one);
      counts.push_back(0);
    }
    const auto [entry, fresh] = known.try_emplace(counts, static_cast<std::uint32_t>(shapes_.size()));
    if (fresh || token == tokens) {
      const std::int64_t at = token < tokens ? static_cast<std::int64_t>(token) : -1;
      shapes_.push_back(places_of(at));
      if (token == tokens) break;
    }
    shape_of_.push_back(entry->second);
  }
}

std::size_t TokenLaunches::first_call(std::uint32_t slot) const {
  return static_cast<std::size_t>(std::find(loop_.slots.begin(), loop_.slots.end(), slot) - loop_.slots.begin());
}

TokenLaunches::Places TokenLaunches::places_of(std::int64_t token) const {
  Places places;
  const std::vector<std::uint32_t>& varying = loop_.varying_slots();
  for (std::uint32_t call = 0; call < calls_.size(); ++call) {
    const auto found = std::lower_bound(varying.begin(), varying.end(), loop_.slots[call]);
    Place place{.call = call};
    std::size_t launches = written_[call].size();
    if (found != varying.end() && *found == loop_.slots[call]) {
      place.varying = static_cast<std::uint32_t>(found - varying.begin());
      if (token >= 0) launches = kernels_.of(token, place.varying).launches.size();
    }
    for (place.number = 0; place.number < launches; ++place.number) {
      place.fixed = place.varying == kFixed ? written_[call][place.number] : nullptr;
      places.push_back(place);
    }
  }
  return places;
}

void visit_last_tokens(WholeTokens& tokens, const TokenLaunches& launches) {
  const std::int64_t end = launches.loop().tokens();
  std::int64_t token = end;
  std::size_t left = kWarmUpLaunches;
  while (token > 0 && left > 0) {
    const std::size_t count = launches.places(launches.shape_of(--token)).size();
    if (count >= left) {
      tokens.visit(token, count - left, [](std::size_t, const std::vector<double>&) {});
      for (++token; token < end; ++token) tokens.visit(token, 0, [](std::size_t, const std::vector<double>&) {});
      return;
    }
    left -= count;
  }
  for (; token < end; ++token) tokens.visit(token, 0, [](std::size_t, const std::vector<double>&) {});
}

StepResidency residency_before_tokens(const StepProgram& program, const L2Spec& l2) {
  const TokenLaunches launches(program);
  WholeTokens tokens(launches, l2);
  StepResidency result;
  visit_before_tokens(tokens, launches, [&](std::vector<double>& shares) {
    result.packed.push_back(quantise(shares));
    result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
    result.shares.insert(result.shares.end(), shares.begin(), shares.end());
  });
  result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
  return result;
}

}  // namespace ridgeline
