// The launches of tokens that a program does not write out, and what they run on; visits of the L2 that are made of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/program/token_kernels.h"
#include "sim/timeline/step_residency.h"
#include "sim/timing/l2_residency.h"
#include "sim/units/budget.h"

namespace ridgeline {

/// The launches of the tokens of a program, by place.
class TokenLaunches {
 public:
  static constexpr std::uint32_t kFixed = UINT32_MAX;
  /// Where a launch of a token comes from.
  struct Place {
    std::uint32_t call = 0;          ///< of the body, counted from its first
    std::uint32_t varying = kFixed;  ///< entry of varying_slots()
    std::uint32_t number = 0;        ///< launch of its operation
    const KernelLaunch* fixed = nullptr;
  };
  using Places = std::vector<Place>;

  explicit TokenLaunches(const StepProgram& program);

  [[nodiscard]] const TokenLoop& loop() const { return loop_; }
  [[nodiscard]] const StepProgram& program() const { return program_; }
  [[nodiscard]] std::uint32_t call(const Place& place) const { return calls_[place.call]; }
  [[nodiscard]] std::size_t shapes() const { return shapes_.size(); }
  [[nodiscard]] const Places& places(std::size_t shape) const { return shapes_[shape]; }
  /// Launches of a token that is not written out; the one before the first of them is of the last shape.
  [[nodiscard]] std::uint32_t shape_of(std::int64_t token) const {
    return token < 0 ? static_cast<std::uint32_t>(shapes_.size() - 1) : shape_of_[static_cast<std::size_t>(token)];
  }
  [[nodiscard]] const KernelLaunch& launch(const Place& place, std::int64_t token) const {
    if (place.varying == kFixed) return *place.fixed;
    if (token < 0) return *written_[place.call][place.number];
    return kernels_.of(token, place.varying).launches[place.number];
  }
  /// Storages that its operation runs on, named so that a token and the two before it have names of their own.
  void operands(const Place& place, std::int64_t token, std::vector<Operand>& out) const {
    operands(calls_[place.call], token, out);
  }
  void operands(std::uint32_t call, std::int64_t token, std::vector<Operand>& out) const;
  /// The storage of a birth of a token.
  [[nodiscard]] StorageId id_of(std::int64_t token, std::uint32_t birth) const {
    constexpr std::int64_t kNamed = 3;
    const auto turn = static_cast<std::uint32_t>((token + 2 * kNamed) % kNamed);
    return static_cast<StorageId>(program_.storages.size()) + turn * births_ + birth;
  }
  [[nodiscard]] std::uint32_t births() const { return births_; }

 private:
  void find_shapes();
  [[nodiscard]] std::size_t first_call(std::uint32_t slot) const;
  [[nodiscard]] Places places_of(std::int64_t token) const;

  struct Birth {
    std::int64_t tokens_before = 0;
    std::uint32_t birth = 0;
  };
  const StepProgram& program_;
  const OpTrace& trace_;
  const TokenLoop& loop_;
  const TokenKernels& kernels_;
  std::vector<std::uint32_t> calls_;                       ///< of the body
  std::vector<std::vector<const KernelLaunch*>> written_;  ///< of each call, in the token that is written out
  std::unordered_map<StorageId, Birth> name_of_;
  std::uint32_t births_ = 0;
  std::vector<Places> shapes_;
  std::vector<std::uint32_t> shape_of_;
};

/// Visits whole tokens one after the other.
class WholeTokens {
 public:
  WholeTokens(const TokenLaunches& launches, const L2Spec& l2) : launches_(launches), held_(l2) {}
  [[nodiscard]] L2Residency& held() { return held_; }
  /// Names of a token stand for storages of another one from here on.
  void forget(std::int64_t token) {
    for (std::uint32_t birth = 0; birth < launches_.births(); ++birth) held_.forget(launches_.id_of(token, birth));
  }
  /// Calls `found(place, shares)` for each launch from entry `from` of its places on.
  template <typename Found>
  void visit(std::int64_t token, std::size_t from, const Found& found) {
    forget(token);
    const TokenLaunches::Places& places = launches_.places(launches_.shape_of(token));
    for (std::size_t i = from; i < places.size(); ++i) {
      launches_.operands(places[i], token, operands_);
      held_.visit(launches_.launch(places[i], token), operands_, shares_);
      found(i, shares_);
    }
  }

 private:
  const TokenLaunches& launches_;
  L2Residency held_;
  std::vector<Operand> operands_;
  std::vector<double> shares_;
};

/// Does what launches_before() does for a step: visits those of the last tokens.
void visit_last_tokens(WholeTokens& tokens, const TokenLaunches& launches);
/// Visits what the L2 may still hold from the step before, then the launches of the step in front of its tokens; calls
/// `found(shares)` for each of these.
template <typename Found>
void visit_before_tokens(WholeTokens& tokens, const TokenLaunches& launches, const Found& found) {
  visit_last_tokens(tokens, launches);
  for (std::int64_t token = 0; token < 3; ++token) tokens.forget(token);
  const StepProgram& program = launches.program();
  std::vector<double> shares;
  std::vector<Operand> operands;
  for (const Action& action : program.played_step()) {
    keep_budget_often("timing kernels");
    if (action.kind != Action::Kind::launch) continue;
    launches.operands(action.call, -1, operands);
    tokens.held().visit(program.launches[action.index], operands, shares);
    found(shares);
  }
}

/// Times of the launches of a step in front of its tokens.
StepResidency residency_before_tokens(const StepProgram& program, const L2Spec& l2);

}  // namespace ridgeline
