// Files that are read again: the same tree while they stay as they are, the new one when they do not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/config/files_read.h"
#include "sim/config/parse_yaml.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::config {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text, std::chrono::seconds ago) {
  std::ofstream(path) << text;
  fs::last_write_time(path, fs::file_time_type::clock::now() - ago);
}

TEST(LoadYaml, a_file_that_changed_is_read_anew_and_one_that_did_not_is_the_same) {
  const fs::path path = temporary_path("changing.yaml");
  const auto value = [&] { return load_yaml(path).find("a")->scalar; };
  write(path, "a: 1\n", std::chrono::seconds(100));
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(value(), "1");
  write(path, "a: 2\n", std::chrono::seconds(50));  // as many bytes, another time
  EXPECT_EQ(value(), "2");
  write(path, "a: 33\n", std::chrono::seconds(50));  // other bytes, the same time but for the clock's steps
  EXPECT_EQ(value(), "33");
  write(path, "a: 4\n", std::chrono::seconds(0));  // so young that its time may stay while it changes
  EXPECT_EQ(value(), "4");
  const auto now = fs::last_write_time(path);
  std::ofstream(path) << "a: 5\n";
  fs::last_write_time(path, now);
  EXPECT_EQ(value(), "5");
  fs::remove(path);
  EXPECT_THROW(load_yaml(path), ConfigError);
}

TEST(LoadYaml, a_file_is_noted_as_read_each_time) {
  const fs::path path = temporary_path("noted.yaml");
  write(path, "a: 1\n", std::chrono::seconds(100));
  for (int i = 0; i < 2; ++i) {
    const FilesRead files;
    load_yaml(path);
    EXPECT_EQ(files.paths().size(), 1u) << i;
  }
  fs::remove(path);
}

}  // namespace
}  // namespace ridgeline::config
