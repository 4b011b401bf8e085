// Runs the program itself and catches what it prints.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_path.h"

namespace ridgeline {

struct ProgramRun {
  int exit_code = -1;
  std::string out, err;
};

/// `arguments` go through the shell, as a person types them; `output`: a redirection of standard output instead of
/// catching it.
inline ProgramRun run_program(const std::string& arguments, const std::string& input = "",
                              const std::string& output = "") {
  const std::string stem = temporary_path("run");
  std::ofstream(stem + ".in", std::ios::binary) << input;
  const std::string command = "cd " RIDGELINE_SOURCE_DIR " && " RIDGELINE_BINARY " " + arguments + " <" + stem +
                              ".in " + (output.empty() ? ">" + stem + ".out" : output) + " 2>" + stem + ".err";
  const int status = std::system(command.c_str());
  const auto contents = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ProgramRun run{WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(stem + ".out"), contents(stem + ".err")};
  for (const char* end : {".in", ".out", ".err"}) std::filesystem::remove(stem + end);
  return run;
}

}  // namespace ridgeline
