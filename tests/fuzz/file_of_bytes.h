// An input of a fuzz target as a file that is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ridgeline {

/// Path of a file in memory with these bytes. One file for the whole process, written anew for each input.
const std::string& file_of_bytes(const std::uint8_t* data, std::size_t size);

}  // namespace ridgeline
