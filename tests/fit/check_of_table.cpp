#include "tests/fit/check_of_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_path.h"

namespace ridgeline::fit {

int check_of_table(const std::string& table, const std::string& of_class, const std::string& from,
                   const std::string& to) {
  const std::filesystem::path folder = temporary_path("laws_of_" + table);
  std::filesystem::create_directories(folder);
  std::stringstream read;
  read << std::ifstream(RIDGELINE_SOURCE_DIR "/data/laws/" + table + ".yaml").rdbuf();
  std::string text = read.str();
  const std::size_t at = text.find(from, text.find("\n  " + of_class + ":\n"));
  EXPECT_NE(at, std::string::npos);
  if (at == std::string::npos) return -1;
  text.replace(at, from.size(), to);
  std::ofstream(folder / (table + ".yaml")) << text;
  const std::string command =
      RIDGELINE_FIT_BINARY " --check " + table + " --class " + of_class + " --laws " + folder.string() + " >/dev/null";
  const int status = std::system(command.c_str());
  std::filesystem::remove_all(folder);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace ridgeline::fit
