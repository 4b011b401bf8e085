// Files beside the target that are being written, by this process and others, and those that a killed process left.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sim/input/text_source.h"
#include "sim/output/output_error.h"
#include "sim/output/write_file.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UnfinishedFiles : public testing::Test {
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

/// Another process's file that is being written, as its lock says, while it lives.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path) : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600)) {
    EXPECT_EQ(::flock(file_, LOCK_EX), 0) << path;
    EXPECT_EQ(::write(file_, "another", 7), 7);
  }
  ~LockedFile() { ::close(file_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

 private:
  int file_;
};

// A thousand names are tried beside the target.
TEST_F(UnfinishedFiles, NamesThatAreTakenBesideItArePassedOver) {
  const std::string name = path(".ridgeline-" + std::to_string(::getpid()) + "-");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<std::unique_ptr<LockedFile>> being_written;
  for (int i = 0; i < 999; ++i) being_written.push_back(std::make_unique<LockedFile>(name + std::to_string(i)));
  write_file(path("a"), "written");
  EXPECT_EQ(text_of(path("a")), "written");
  EXPECT_FALSE(fs::exists(name + "999")) << "it was renamed";
  being_written.push_back(std::make_unique<LockedFile>(name + "999"));
  try {
    write_file(path("a"), "again");
    FAIL() << "no name is left";
  } catch (const OutputError& error) {
    EXPECT_EQ(error.what(), path("a") + ": cannot be written: File exists");
  }
  fs::rename(name + "0", path("away"));
  write_file(path("a"), "again");
  EXPECT_EQ(text_of(path("a")), "again");
  fs::rename(path("away"), name + "0");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(text_of(name + std::to_string(i)), "another") << i;
}

// A killed process leaves its unfinished file behind, without the lock; other files of like names are not touched.
// A writer that gave its lock up before it renamed its file lost it to another one, which took it for one that was
// left.
TEST_F(UnfinishedFiles, WritersAtOneTimeTakeNothingFromEachOther) {
  std::vector<pid_t> writers;
  for (int writer = 0; writer < 8; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        for (int i = 0; i < 200; ++i) write_file(path(std::to_string(i % 3)), "text");
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    writers.push_back(child);
  }
  for (const pid_t child : writers) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(names().size(), 3u);
}

TEST_F(UnfinishedFiles, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path(".ridgeline-1-0").c_str(), O_WRONLY | O_CREAT, 0600);
    ::flock(file, LOCK_EX);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(path(".ridgeline-1-0")));
  const LockedFile alive(path(".ridgeline-2-0"));
  std::ofstream(path("ridgeline-3-0")) << "mine";
  fs::create_symlink(path("ridgeline-3-0"), path(".ridgeline-4-0"));
  fs::create_directory(path(".ridgeline-5-0"));
  write_file(path("a"), "written");
  EXPECT_THAT(names(),
              ::testing::ElementsAre(".ridgeline-2-0", ".ridgeline-4-0", ".ridgeline-5-0", "a", "ridgeline-3-0"));
}

// A file that is written piece by piece is there once it is finished, and what was there before stays until then.
TEST_F(UnfinishedFiles, PiecesAreAFileOnceTheyAreFinished) {
  std::ofstream(path("a")) << "before";
  std::string whole;
  for (const char* name : {"a", "new", "pieces.gz"}) {
    whole.clear();
    FileWriter file(path(name));
    for (int i = 0; i < 1000; ++i) {
      file.add("a piece of some length " + std::to_string(i));
      whole += "a piece of some length " + std::to_string(i);
    }
    EXPECT_EQ(fs::exists(path(name)) ? text_of(path(name)) : "", name[0] == 'a' ? "before" : "");
    EXPECT_EQ(file.finish(), whole.size());
    EXPECT_EQ(std::string(name).ends_with(".gz") ? read_text(path(name)) : text_of(path(name)), whole);
  }
  EXPECT_THAT(names(), testing::ElementsAre("a", "new", "pieces.gz"));
}

TEST_F(UnfinishedFiles, WithoutAnEndNothingIsLeftOfThem) {
  std::ofstream(path("a")) << "before";
  for (const char* name : {"a", "new", "pieces.gz"}) {
    FileWriter file(path(name));
    file.add("half of it");
  }
  FileWriter stopped(path("b")), other(path("c"));
  stopped.add("half of it");
  EXPECT_EQ(names().size(), 3u);
  remove_own_unfinished();  // as a signal's handler does
  EXPECT_THAT(names(), testing::ElementsAre("a"));
  EXPECT_EQ(text_of(path("a")), "before");
}

// What no file can stand beside gets all at the end, in one go.
TEST_F(UnfinishedFiles, APipeAndAFileOfTwoNamesGetTheirPiecesAtTheEnd) {
  std::ofstream(path("one")) << "before";
  fs::create_hard_link(path("one"), path("two"));
  FileWriter file(path("one"));
  file.add("first, ");
  file.add("second");
  EXPECT_EQ(text_of(path("two")), "before");
  EXPECT_EQ(file.finish(), 13u);
  EXPECT_EQ(text_of(path("two")), "first, second");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileWriter piped("/proc/self/fd/" + std::to_string(ends[1]));
  piped.add("first, ");
  piped.add("second");
  piped.finish();
  char got[32];
  EXPECT_EQ(::read(ends[0], got, sizeof got), 13);
  for (const int end : ends) ::close(end);
  FileWriter full("/dev/full");
  full.add("text");
  EXPECT_THROW(full.finish(), OutputError);
}

}  // namespace
}  // namespace ridgeline
