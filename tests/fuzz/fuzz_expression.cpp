// Arithmetic of exercises, over names that are known and such that are not.
#include "sim/study/exercise/expression.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_expression(const std::uint8_t* data, std::size_t size) {
  const auto value_of = [](const std::string& name) {
    if (name == "unknown") throw UserError("no such name");
    return static_cast<double>(name.size()) - 3.0;
  };
  try {
    (void)evaluate({reinterpret_cast<const char*>(data), size}, value_of);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).empty()) return "a message without words";
  }
  return {};
}

}  // namespace ridgeline
