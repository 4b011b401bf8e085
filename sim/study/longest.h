// The longest sequences that a step has room for, and how many tokens the paged cache of a server holds.
//
// Tested by tests/study/longest_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

struct LongestFit {
  std::int64_t tokens = 0;   ///< of each sequence, or of each prompt; 0: not even kStep fit
  std::int64_t failing = 0;  ///< the next length, which does not fit; 0: the search ended at the network's positions
  std::int64_t needed = 0, needed_failing = 0;
  std::int64_t capacity = 0;
  bool of_prompt = false;
  int predictions = 0;
};

/// Lengths are multiples of this.
inline constexpr std::int64_t kLengthStep = 64;

/// The longest of the scenario's sequences (in use: of its prompts, beside the tokens that it generates) with its
/// batch. Throws UserError for a recorded step, packed sequences and networks of one length.
LongestFit fit_length(Session& session, const Scenario& scenario);

/// A server that keeps keys and values in blocks of tokens, which sequences take as they grow (PagedAttention of vLLM).
struct ServerMemory {
  double utilization = 0.9;            ///< of the device's memory, for everything
  std::int64_t block = 16;             ///< tokens
  std::int64_t batched_tokens = 8192;  ///< of one pass, by which the server measures its peak
  std::int64_t context = 8192;         ///< tokens of a sequence
};

struct ServerCache {
  ServerMemory asked;
  std::int64_t capacity = 0, given = 0;        ///< of the device; what the server may use
  std::int64_t context = 0, weights = 0;       ///< of CUDA and its libraries; of the network on a rank
  std::int64_t rest_of_peak = 0;               ///< of a pass of `batched_tokens`
  std::int64_t bytes_of_token = 0, cache = 0;  ///< keys and values of one token on a rank; left for all
  std::int64_t blocks = 0, tokens = 0;
  double sequences = 0.0;  ///< of `context` tokens, at the same time
};

/// The scenario uses a network; passes are those of its code, which need more memory than a server's own kernels.
ServerCache server_cache(Session& session, const Scenario& scenario, const ServerMemory& server);

/// Bytes of keys and values of a token on a rank.
std::int64_t bytes_of_cached_token(const Scenario& scenario);

}  // namespace ridgeline
