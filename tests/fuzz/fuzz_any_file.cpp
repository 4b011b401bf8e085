// Files of which nothing is known: what they are, and the readers that no other target has.
#include <string_view>

#include "sim/allocator/memory_texts.h"
#include "sim/other_simulators/translate.h"
#include "sim/recognition/recognise.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/file_of_bytes.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_any_file(const std::uint8_t* data, std::size_t size) {
  const std::string& path = file_of_bytes(data, size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const OutOfMemoryText& one : out_of_memory_texts(text))
    if (one.requested < 0 || one.line < 1) return "an out-of-memory text of less than nothing";
  (void)memory_summaries(text);
  (void)memory_stats(text);
  const recognition::Recognised seen = recognition::recognise(path);
  if (seen.kind == nullptr) return {};
  if (recognition::wrong_file(path, "no command").empty()) return "a kind of file that is not called by its name";
  if (!other_simulators::is_other_simulators(seen.kind->name)) return {};
  try {
    (void)other_simulators::translated(other_simulators::machine_facts(path, seen.kind->name), path);
  } catch (const UserError&) {
    return {};
  }
  return {};
}

}  // namespace ridgeline
