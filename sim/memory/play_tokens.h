// Tokens that a program does not write out, run through the allocator where only what is held is asked: requests that
// come again and find their pool as they did before are passed over.
//
// The pools of small and of large blocks know nothing of each other as long as the device has room. Keys and values
// grow with every token, and their blocks are large; what else a token allocates is mostly small and comes again, block
// for block of the network and token for token. Where the device has no more room, and the allocator gives both pools'
// free segments back, the run returns to a token before which nothing was passed over, and runs what follows in full.
#pragma once

#include "sim/memory/held_memory.h"
#include "sim/memory/token_memory.h"

namespace ridgeline {

/// False: memory ran out.
bool play_tokens(HeldMemory& held, TokenMemory& tokens, std::size_t step);

}  // namespace ridgeline
