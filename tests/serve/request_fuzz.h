// Requests that were read, answered whatever they ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline {

/// "METHOD TARGET HOST ORIGIN\n", then a body. Reads the target, asks the guard, and answers what is no long question.
/// Returns the promise that was broken, empty when none was: decoded text has no control character, reading what was
/// decoded again gives the same, a stranger is refused, every answer is a status of HTTP with JSON.
std::string fuzz_request(const std::uint8_t* data, std::size_t size);

}  // namespace ridgeline
