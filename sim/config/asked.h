// What readers ask of the values they read: for who describes a file instead of reading it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/config/value.h"

namespace ridgeline::config {

struct Asked {
  enum class Kind : unsigned char { text, flag, integer, measure, choice, list, mapping };

  Kind kind = Kind::text;
  Dimension dimension = Dimension::dimensionless;  ///< of a measure
  Range range{};                                   ///< of a measure, in base units
  IntegerRange integers{};                         ///< of an integer
  std::vector<std::string> names{};                ///< of a choice: what may be given; of a mapping: its keys
};

/// While one lives, it notes what its thread's readers ask. A value that is not there is not asked; the names of a
/// choice are only known where the value is none of them.
class AskedOf {
 public:
  AskedOf();
  ~AskedOf();
  AskedOf(const AskedOf&) = delete;
  AskedOf& operator=(const AskedOf&) = delete;

  /// By path of the value; each kind once, as it was asked first.
  [[nodiscard]] const std::map<std::string, std::vector<Asked>>& notes() const { return notes_; }
  static bool listens();  ///< for who would have to copy something to note it
  static void note(const std::string& path, const Asked& asked);

 private:
  AskedOf* outer_;
  std::map<std::string, std::vector<Asked>> notes_;
};

}  // namespace ridgeline::config
