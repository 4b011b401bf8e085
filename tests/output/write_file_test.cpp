// Where files go: over regular files, through links, devices and pipes; and what is left when the disk is full.
#include "sim/output/write_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "sim/input/text_source.h"
#include "sim/output/output_error.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class WriteFile : public testing::Test {
 protected:
  fs::path folder_ = temporary_path(testing::UnitTest::GetInstance()->current_test_info()->name());
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder_)) result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }
};

/// Files of this process may not grow beyond `bytes` while it lives: writing fails as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(WriteFile, AnExistingFileKeepsItsModeAndNothingLiesBesideIt) {
  std::ofstream(path("a")) << "before";
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_exec);
  write_file(path("a"), "after");
  EXPECT_EQ(contents(path("a")), "after");
  EXPECT_EQ(fs::status(path("a")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_exec);
  EXPECT_THAT(names(), ::testing::ElementsAre("a"));
}

TEST_F(WriteFile, ALinkStaysALinkAndItsTargetIsWritten) {
  fs::create_directories(path("far"));
  std::ofstream(path("far/target")) << "before";
  fs::create_symlink("far/target", path("link"));
  write_file(path("link"), "after");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(contents(path("far/target")), "after");
  fs::create_symlink("far/new", path("dangling"));
  write_file(path("dangling"), "made");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(contents(path("far/new")), "made");
}

TEST_F(WriteFile, AllNamesOfAFileSeeWhatIsWrittenToOne) {
  std::ofstream(path("one")) << "before";
  fs::create_hard_link(path("one"), path("two"));
  write_file(path("one"), "after");
  EXPECT_EQ(contents(path("two")), "after");
}

TEST_F(WriteFile, APipeIsWrittenThrough) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = contents(path("pipe")); });
  write_file(path("pipe"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(WriteFile, ADeviceIsWrittenThroughAndAFullOneIsAnErrorOfOutput) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_symlink("/dev/full", path("full.gz"));
  for (const std::string& name : {std::string("/dev/full"), path("full.gz")}) {
    try {
      write_file(name, std::string(1 << 20, 'x'));
      FAIL() << name;
    } catch (const OutputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(name + ": cannot be written: No space left on device"));
    }
  }
  EXPECT_TRUE(fs::is_symlink(path("full.gz")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(WriteFile, ADescriptorOfThisProcessIsWrittenWhereItStands) {
  const int file = ::open(path("a").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), path("link"));
  write_file(path("link"), "and ");
  write_file("/dev/fd/" + std::to_string(file), "after");
  ::close(file);
  EXPECT_EQ(contents(path("a")), "before and after");
}

TEST_F(WriteFile, OnAFullDiskTheOldFileStaysAndNoHalfOfTheNew) {
  std::ofstream(path("a")) << "before";
  {
    const FullDisk disk(4096);
    EXPECT_THROW(write_file(path("a"), std::string(10000, 'x')), OutputError);
    EXPECT_THROW(write_file(path("new"), std::string(10000, 'x')), OutputError);
    std::string random;
    for (unsigned i = 0, x = 1; i < 100000; ++i) random += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    EXPECT_THROW(write_file(path("new.gz"), random), OutputError);
    fs::create_symlink("nowhere", path("dangling"));
    EXPECT_THROW(write_file(path("dangling"), random), OutputError);
  }
  EXPECT_EQ(contents(path("a")), "before");
  EXPECT_THAT(names(), ::testing::ElementsAre("a", "dangling"));
}

TEST_F(WriteFile, ANameThatCannotBeWrittenIsAMistakeOfThePerson) {
  EXPECT_THROW(write_file(path("no/folder/a"), "x"), UserError);
  EXPECT_THROW(write_file(folder_.string(), "x"), UserError);
  EXPECT_THROW(write_file("", "x"), UserError);
  std::ofstream(path("a")) << "x";
  EXPECT_THROW(write_file(path("a/b"), "x"), UserError);
  EXPECT_THROW(write_file(path(std::string(300, 'n')), "x"), UserError);
  write_file(path(std::string(255, 'n')), "the longest name there is");
}

TEST_F(WriteFile, ANameEndingInGzIsCompressed) {
  write_file(path("a.gz"), "text");
  EXPECT_EQ(contents(path("a.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(read_text(path("a.gz")), "text");
}

}  // namespace
}  // namespace ridgeline
