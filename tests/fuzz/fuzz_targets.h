// Inputs as bytes, for a fuzzer and for the tests beside it: whatever they hold, nothing crashes and no promise breaks.
//
// What is wrong in an input may only be answered by a UserError. Each returns what a broken promise was, empty when
// none was. `./dev check fuzz` runs them behind tests/fuzz/libfuzzer.cc, tests/fuzz/corpus_test.cpp over their corpora.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline {

/// A csv history or a pickled snapshot, as the first byte says: read, replayed on the recorded and on own addresses,
/// and with the settings and capacity its bytes choose.
std::string fuzz_history(const std::uint8_t* data, std::size_t size);

/// Four bytes of settings and capacity, then two or more bytes an action: allocate on one of four streams, free, use by
/// another stream, complete events, empty the cache. After every action: blocks tile their segments, nothing overlaps,
/// free neighbours are merged, counters are sums over blocks, peaks are no less; at the end everything goes back.
std::string fuzz_sequence(const std::uint8_t* data, std::size_t size);

/// YAML: what is read keeps to the limits of size and depth, what is not says where.
std::string fuzz_yaml(const std::uint8_t* data, std::size_t size);

/// Descriptions: YAML, or "@NAME" and changes of a shipped one (changed_tree.h).
std::string fuzz_hardware(const std::uint8_t* data, std::size_t size);  ///< hosts/NAME and software/NAME too
std::string fuzz_cluster(const std::uint8_t* data, std::size_t size);
std::string fuzz_model(const std::uint8_t* data, std::size_t size);
std::string fuzz_network(const std::uint8_t* data, std::size_t size);      ///< models put together of parts
std::string fuzz_huggingface(const std::uint8_t* data, std::size_t size);  ///< names: TYPE-NUMBER of measured ones
std::string fuzz_scenario(const std::uint8_t* data, std::size_t size);
std::string fuzz_sweep(const std::uint8_t* data, std::size_t size);

/// A points file written by the target with four bytes a change of it: set, turned, cut, copied, cleared. What is
/// accepted holds no other points than were written.
std::string fuzz_points(const std::uint8_t* data, std::size_t size);

/// Recordings of any format, as a file holds them: read, made ready for a replay, some operations lowered.
std::string fuzz_recording(const std::uint8_t* data, std::size_t size);
/// The same for op traces; of an odd number of bytes written again and read again, which changes nothing.
std::string fuzz_op_trace(const std::uint8_t* data, std::size_t size);

/// A report of Nsight Systems written by the target, with four bytes a change of it: read and made ready for a replay.
std::string fuzz_nsight(const std::uint8_t* data, std::size_t size);
/// Tables of sums and of counters: read, with finite numbers.
std::string fuzz_profile_table(const std::uint8_t* data, std::size_t size);

/// Whole answers: a recording of any format, and a scenario that is small, predicted with time, range, timeline, memory
/// and reasons. Numbers are finite and in order.
std::string fuzz_replayed_step(const std::uint8_t* data, std::size_t size);
std::string fuzz_described_step(const std::uint8_t* data, std::size_t size);

/// One line of a kernel-case file: answered in one object, with a finite time or a mistake.
std::string fuzz_kernel_case(const std::uint8_t* data, std::size_t size);

/// A file of any kind: recognised, and what belongs to its kind read: a text of PyTorch's memory, another simulator's
/// machine, which becomes descriptions that are valid.
std::string fuzz_any_file(const std::uint8_t* data, std::size_t size);

std::string fuzz_probe(const std::uint8_t* data, std::size_t size);
std::string fuzz_expression(const std::uint8_t* data, std::size_t size);

}  // namespace ridgeline
