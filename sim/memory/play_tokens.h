// Tokens that a program does not write out, run through the allocator where only what is held is asked: requests that
// come again and find their pool as they did before are passed over.
//
// The pools of small and of large blocks know nothing of each other as long as the device has room. Keys and values
// grow with every token, and their blocks are large; what else a token allocates is mostly small and comes again, block
// for block of the network and token for token.
#pragma once

#include "sim/memory/held_memory.h"
#include "sim/memory/token_memory.h"

namespace ridgeline {

enum class TokensPlayed : std::uint8_t {
  all,
  out_of_memory,
  too_few  ///< memory ran out meanwhile, and blocks went back to the device: what was passed over was not alike
};
TokensPlayed play_tokens(HeldMemory& held, TokenMemory& tokens, std::size_t step);

}  // namespace ridgeline
