// Bytes as a stranger sends them to the server's socket, for a fuzzer and for the test beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline {

/// HTTP requests one after the other; after an upgrade the rest are frames of a WebSocket, or, where the first byte is
/// 'F', all of them are. Returns the promise that was broken, empty when none was: nothing beyond the limits is kept,
/// what is admitted names this server alone and no header that decides twice, a decoded target has no control
/// character, a message asks, gives up or is told its mistake, and each mistake is told in JSON.
std::string fuzz_bytes(const std::uint8_t* data, std::size_t size);

}  // namespace ridgeline
