#include "sim/units/readable_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/config/parse_yaml.h"
#include "sim/input/text_source.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

class ReadableFiles : public testing::Test {
 protected:
  void SetUp() override {
    inside_ = temporary_path("inside");
    outside_ = temporary_path("outside");
    for (const fs::path& folder : {inside_, outside_}) {
      fs::create_directories(folder);
      std::ofstream(folder / "a.yaml") << "a: 1\n";
    }
    fs::create_symlink(outside_ / "a.yaml", inside_ / "link.yaml");
    read_only_below({inside_});
  }
  void TearDown() override {
    read_only_below({});
    fs::remove_all(inside_);
    fs::remove_all(outside_);
  }
  fs::path inside_, outside_;
};

TEST_F(ReadableFiles, only_what_lies_below_a_folder_is_read) {
  EXPECT_NO_THROW(config::load_yaml(inside_ / "a.yaml"));
  EXPECT_NO_THROW(read_text((inside_ / "." / "a.yaml").string()));
  const std::vector<fs::path> others{outside_ / "a.yaml",   inside_ / ".." / outside_.filename() / "a.yaml",
                                     inside_ / "link.yaml", inside_.string() + "more/a.yaml",
                                     "/etc/passwd",         "a.yaml"};
  for (const fs::path& file : others) {
    EXPECT_THROW(config::load_yaml(file), UserError) << file;
    EXPECT_THROW(read_text(file.string()), UserError) << file;
    EXPECT_THROW((void)trace::looks_like_recording(file.string()), UserError) << file;
    EXPECT_THROW(trace::RecordingFile(file.string()), UserError) << file;
  }
}

TEST_F(ReadableFiles, whether_a_file_is_there_is_not_told) {
  const auto said = [](const fs::path& file) -> std::string {
    try {
      config::load_yaml(file);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string there = said(outside_ / "a.yaml"), not_there = said(outside_ / "b.yaml");
  EXPECT_EQ(there.substr(there.find("a.yaml") + 6), not_there.substr(not_there.find("b.yaml") + 6));
}

}  // namespace
}  // namespace ridgeline
