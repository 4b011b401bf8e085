// Mistakes that are found when a step is put together, after its scenario was read.
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {

/// Throws `mistake` anew, with file:line:column of the key that it begins with ("training.attention: ..."), where the
/// scenario was read and has that key.
[[noreturn]] void say_in_place(const Scenario& scenario, const UserError& mistake);

/// What `make` returns.
template <typename Make>
auto said_in_place(const Scenario& scenario, Make make) {
  try {
    return make();
  } catch (const UserError& mistake) {
    say_in_place(scenario, mistake);
  }
}

}  // namespace ridgeline
