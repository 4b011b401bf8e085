// A file name of this process's own: ctest runs tests of one program side by side.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace ridgeline {

inline std::string temporary_path(const std::string& name) {
  return ::testing::TempDir() + std::to_string(::getpid()) + "-" + name;
}

}  // namespace ridgeline
