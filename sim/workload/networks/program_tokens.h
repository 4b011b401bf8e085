// Words of a .block file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/networks/network_program.h"

namespace ridgeline::networks {

struct ProgramToken {
  enum class Kind : std::uint8_t { name, whole, real, text, sign, line_end, indent, dedent, end };
  Kind kind = Kind::end;
  std::string text;
  ProgramPlace place;
  std::string comment;  ///< of a line's end
};

/// Throws config::ConfigError at a character or an indentation that cannot be.
std::vector<ProgramToken> program_tokens(std::string_view text, const NetworkProgram& program);

}  // namespace ridgeline::networks
