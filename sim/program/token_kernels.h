// Kernels of the tokens that a trace does not write out (OpTrace::tokens): those of operations that are the same for
// each are the program's, the others are lowered token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/kernels/lowering.h"
#include "sim/program/step_program.h"
#include "sim/workload/token_loop.h"

namespace ridgeline {

struct TokenKernels {
  /// Operations of each token, by entry of TokenLoop::varying_slots(); tokens in a row with one operation share it.
  std::vector<std::shared_ptr<const LoweredOp>> varying;
  std::size_t slots = 0;  ///< that vary
  [[nodiscard]] const LoweredOp& of(std::int64_t token, std::size_t slot) const {
    return *varying[static_cast<std::size_t>(token) * slots + slot];
  }
};

/// Equal for tokens whose operations allocate the same while they run.
std::uint64_t hash_of_temporaries(const TokenKernels& kernels);

/// `token` counts from the first that is not written out. Tokens are lowered beside each other.
std::shared_ptr<const TokenKernels> lower_tokens(const TokenLoop& loop,
                                                 const std::function<LoweredOp(const Op&)>& lower);

/// Tokens are worked on in parts of so many, whatever the number of cores is.
inline constexpr std::int64_t kTokensOfPart = 512;
/// Runs `work(part, begin, end)` on all parts of [0, count), beside each other.
void beside_each_other(std::int64_t count, const std::function<void(std::size_t, std::int64_t, std::int64_t)>& work);

}  // namespace ridgeline
