// Times of the launches of tokens that a program does not write out. What a token finds in the L2 is worked out for the
// stretches of its launches that differ (blocks of a network do the same), and anew only where sizes grow.
//
// Tokens are worked on beside each other, in parts that do not depend on the number of cores.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/program/token_kernels.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

struct TokenTimes {
  /// Tokens of the same number of launches for each operation.
  struct Shape {
    StepProgram program;                   ///< two of them, one behind another
    std::vector<std::uint32_t> kernel_of;  ///< of each launch of one, which of its kernels that is
    std::size_t kernels = 0;
  };
  std::vector<Shape> shapes;
  struct Token {
    std::uint32_t shape = 0;
    std::size_t held = 0;  ///< entries of `held` from here on: of each of its kernels
  };
  std::vector<Token> tokens;
  std::vector<std::uint32_t> held;  ///< entry of `launches`
  /// A launch that differs from all others in its place, what it does or how long it takes.
  struct Launch {
    const KernelLaunch* launch = nullptr;
    std::uint32_t call = 0;   ///< of the trace, of the last token that is written out
    std::int64_t token = -1;  ///< whose operation it is of, where those differ
    std::size_t varying = 0;  ///< entry of TokenLoop::varying_slots(), likewise
    std::uint32_t time = 0;   ///< entry of `times`
    std::int64_t runs = 0;
    std::shared_ptr<const std::vector<TokenLaunch::Share>> modules;
  };
  std::vector<Launch> launches;
  std::vector<KernelTime> times;
};

TokenTimes time_tokens(const StepProgram& program, const TimingEngine& engine, const L2Spec& l2);

/// The program with the launches of its tokens at the end of its steady step.
struct ProgramOfTokens {
  std::shared_ptr<const OpTrace> trace;  ///< what `program` points to
  StepProgram program;
};
ProgramOfTokens with_token_launches(const StepProgram& program, const TokenTimes& tokens);

}  // namespace ridgeline
