// Inputs as bytes, for a fuzzer and for the tests beside it: whatever they hold, nothing crashes and no promise breaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline {

/// A csv history or a pickled snapshot, as the first byte says: read, replayed on the recorded and on own addresses,
/// and with the settings and capacity its bytes choose. What is wrong in it may only be answered by a UserError.
/// Returns what a broken promise was, empty when none was.
std::string fuzz_history(const std::uint8_t* data, std::size_t size);

/// Four bytes of settings and capacity, then two or more bytes an action: allocate on one of four streams, free, use by
/// another stream, complete events, empty the cache. After every action: blocks tile their segments, nothing overlaps,
/// free neighbours are merged, counters are sums over blocks, peaks are no less; at the end everything goes back.
/// Returns the first promise broken, empty when all were kept.
std::string fuzz_sequence(const std::uint8_t* data, std::size_t size);

}  // namespace ridgeline
