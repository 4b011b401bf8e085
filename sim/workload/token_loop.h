// Tokens of a generation that are not written out: each does what the last written one does, on sizes that grow with
// the length of the sequence.
//
// A size is a polynomial of the token's number, one for each remainder of eight: sums of products of lengths are
// quadratic, and rounding (vectors of two, alignments of 16 bytes) comes again after eight tokens. Terms are read from
// tokens that were run in full, and are taken only where tokens in the middle and at the end have the same sizes.
// Tested by tests/workload/token_loop_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline {

class TokenLoop {
 public:
  static constexpr std::int64_t kPeriod = 8;
  /// Value number u of a sequence whose third differences are 0.
  struct Terms {
    std::int64_t value = 0, first = 0, second = 0;  ///< at 0, and its differences there
    [[nodiscard]] std::int64_t at(std::int64_t u) const { return value + u * first + u * (u - 1) / 2 * second; }
    bool operator==(const Terms&) const = default;
  };
  template <typename Value>
  using ByRemainder = std::array<Value, kPeriod>;

  std::int64_t first = 0, end = 0;  ///< tokens [first, end) are not written out
  /// Records of the last two tokens that are written out, of every step. The loop follows the second.
  struct Place {
    std::uint32_t step = 0;  ///< record with which the step begins
    StepRange before, body;
  };
  std::vector<Place> places;
  std::vector<std::uint32_t> slots;  ///< of each call of the body, in order: calls of one slot have one operation
  std::size_t slot_count = 0;

  [[nodiscard]] std::int64_t tokens() const { return end - first; }
  /// Slots whose operations differ from token to token, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& varying_slots() const { return varying_slots_; }
  /// The operation of entry `varying` of varying_slots().
  [[nodiscard]] Op op(std::size_t varying, std::int64_t token) const;
  /// Births of storages whose sizes differ, ascending; bytes of an entry.
  [[nodiscard]] const std::vector<std::uint32_t>& varying_births() const { return varying_births_; }
  [[nodiscard]] std::int64_t bytes(std::size_t varying, std::int64_t token) const;
  /// Entries of varying_births() that are as large as each other in every token.
  [[nodiscard]] bool same_births(std::size_t one, std::size_t other) const;

 private:
  friend class TokenLoopMaker;
  struct VaryingOp {
    ByRemainder<Op> base;                     ///< at u = 0
    ByRemainder<std::vector<Terms>> numbers;  ///< of its fields
  };
  /// Tokens [begin, end) of the same terms.
  struct Piece {
    std::int64_t begin = 0, end = 0;
    std::vector<VaryingOp> ops;              ///< beside varying_slots_
    std::vector<ByRemainder<Terms>> births;  ///< beside varying_births_
  };
  [[nodiscard]] const Piece& piece_of(std::int64_t token) const;

  std::vector<std::uint32_t> varying_slots_, varying_births_;
  std::vector<Piece> pieces_;
};

/// A storage as a token names it: by the number of its birth in this token, in the one before or in the step.
struct NameInToken {
  enum class Of : std::uint8_t { trace, step, token, token_before, nothing } of = Of::trace;  ///< nothing: no bytes
  std::uint32_t number = 0;
  bool operator==(const NameInToken&) const = default;
};
/// Storages that are born in records, in order.
std::vector<StorageId> births_in(const OpTrace& trace, StepRange records);
class NamesInToken {
 public:
  NamesInToken(const OpTrace& trace, const TokenLoop::Place& place);
  [[nodiscard]] NameInToken of(StorageId storage) const;

 private:
  const OpTrace& trace_;
  std::vector<StorageId> before_, body_;  ///< born there, ascending
  StorageId first_of_step_ = UINT32_MAX;
};

/// Tokens that have to be run in full to read the terms of pieces that end before each of `ends`, from `first` on.
std::vector<std::int64_t> tokens_to_read(std::int64_t first, std::span<const std::int64_t> ends);

/// A token that was run in full.
struct SampledToken {
  std::int64_t number = 0;
  TokenLoop::Place place;
};
/// The loop of `trace`, whose `places` are given, from a trace of tokens_to_read(first, ends). Nothing where a token
/// does other than the last one that is written out; else the pieces whose terms do not hold go to `wrong`, by their
/// number.
std::optional<TokenLoop> read_token_loop(const OpTrace& trace, std::vector<TokenLoop::Place> places,
                                         const OpTrace& samples, std::span<const SampledToken> sampled,
                                         std::int64_t first, std::span<const std::int64_t> ends,
                                         std::vector<std::size_t>& wrong);

}  // namespace ridgeline
