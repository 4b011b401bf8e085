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

/// The rights of nobody in particular, where the test is run by root, who may do everything.
class AsAnybody {
 public:
  AsAnybody() {
    if (root_ && ::setresuid(65534, 65534, 0) != 0) ADD_FAILURE();
  }
  ~AsAnybody() {
    if (root_ && ::setresuid(0, 0, 0) != 0) ADD_FAILURE();
  }
  AsAnybody(const AsAnybody&) = delete;
  AsAnybody& operator=(const AsAnybody&) = delete;

 private:
  bool root_ = ::geteuid() == 0;
};

TEST_F(WriteFile, InAFolderThatTakesNoNewFileAnOldOneIsWrittenThrough) {
  std::ofstream(path("a")) << "longer before";
  fs::permissions(path("a"), fs::perms(0666));
  fs::permissions(folder_, fs::perms(0555));
  struct stat before {
  }, after{};
  ::stat(path("a").c_str(), &before);
  {
    const AsAnybody anybody;
    write_file(path("a"), "after");
    try {
      write_file(path("new"), "x");
      FAIL() << "there is no place for it";
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), path("new") + ": cannot be written: Permission denied");
    }
  }
  ::stat(path("a").c_str(), &after);
  fs::permissions(folder_, fs::perms(0777));
  EXPECT_EQ(contents(path("a")), "after");
  EXPECT_EQ(after.st_ino, before.st_ino) << "the same file";
  EXPECT_THAT(names(), ::testing::ElementsAre("a"));
}

TEST_F(WriteFile, AFileThatMayNotBeWrittenStaysThoughItsFolderWouldTakeAnother) {
  std::ofstream(path("a")) << "before";
  fs::permissions(path("a"), fs::perms(0444));
  fs::permissions(folder_, fs::perms(0777));
  try {
    const AsAnybody anybody;
    write_file(path("a"), "after");
    FAIL() << "it may not be written";
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(), path("a") + ": cannot be written: Permission denied");
  }
  EXPECT_EQ(contents(path("a")), "before");
  EXPECT_THAT(names(), ::testing::ElementsAre("a"));
}

TEST_F(WriteFile, AnotherOwnersFileStaysTheirsWhereThatIsAllowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "root alone may give files away";
  for (const auto& [user, group] : std::initializer_list<std::pair<uid_t, gid_t>>{{1234, 0}, {0, 4321}, {1234, 4321}}) {
    std::ofstream(path("a")) << "before";
    ASSERT_EQ(::chown(path("a").c_str(), user, group), 0);
    ASSERT_EQ(::chmod(path("a").c_str(), 06754), 0);
    write_file(path("a"), "after");
    struct stat after {};
    ::stat(path("a").c_str(), &after);
    EXPECT_EQ(after.st_uid, user);
    EXPECT_EQ(after.st_gid, group);
    EXPECT_EQ(after.st_mode & 07777, 06754u) << "a change of owner drops the set-id bits, so the mode comes last";
    EXPECT_EQ(contents(path("a")), "after");
    fs::remove(path("a"));
  }
}

TEST_F(WriteFile, WhoMayNotGiveAFileAwayWritesItAsTheirOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a file of somebody else";
  std::ofstream(path("a")) << "before";
  fs::permissions(path("a"), fs::perms(0666));
  fs::permissions(folder_, fs::perms(0777));
  {
    const AsAnybody anybody;
    write_file(path("a"), "after");
  }
  struct stat after {};
  ::stat(path("a").c_str(), &after);
  EXPECT_EQ(after.st_uid, 65534u);
  EXPECT_EQ(after.st_mode & 07777, 0666u);
  EXPECT_EQ(contents(path("a")), "after");
}

// 4095 bytes are the longest path: the new file's name is longer than the target's, and no right is missing.
TEST_F(WriteFile, WhereNoLongerNameFitsNothingIsWritten) {
  fs::path deep = folder_;
  while (deep.string().size() < 4095 - 2 - 100)
    deep /= std::string(std::min<std::size_t>(90, 4092 - deep.string().size()), 'd');
  fs::create_directories(deep);
  if (const std::size_t left = 4095 - 2 - deep.string().size(); left > 1) deep /= std::string(left - 1, 'e');
  fs::create_directories(deep);
  const std::string file = (deep / "a").string();
  ASSERT_LE(file.size(), 4095u);
  ASSERT_GE(file.size(), 4090u);
  std::ofstream(file) << "before";
  try {
    write_file(file, "after");
    FAIL() << "no name fits beside it";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(": cannot be written: File name too long"));
  }
  EXPECT_EQ(contents(file), "before");
}

TEST_F(WriteFile, LinksToLinksAreFollowedToTheFile) {
  fs::create_directories(path("far"));
  fs::create_symlink("far/second", path("first"));
  fs::create_symlink(path("end"), path("far/second"));
  write_file(path("first"), "made");
  EXPECT_EQ(contents(path("end")), "made");
  write_file(path("first"), "again");
  EXPECT_EQ(contents(path("end")), "again");
  EXPECT_THAT(names(), ::testing::ElementsAre("end", "far", "first"));
  EXPECT_TRUE(fs::is_symlink(path("first")) && fs::is_symlink(path("far/second")));
  fs::create_symlink("circle", path("circle"));
  try {
    write_file(path("circle"), "x");
    FAIL() << "it has no end";
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(), path("circle") + ": cannot be written: Too many levels of symbolic links");
  }
}

// As many as the kernel follows: forty.
TEST_F(WriteFile, FortyLinksLeadToTheirEnd) {
  const fs::path folder = fs::canonical(folder_);
  const auto link = [&](int i) { return folder / ("link" + std::to_string(i)); };
  for (int i = 1; i <= 40; ++i) fs::create_symlink(i < 40 ? link(i + 1) : folder / "end", link(i));
  write_file(link(1), "made");
  EXPECT_EQ(contents(path("end")), "made");
  for (int i = 1; i <= 40; ++i) EXPECT_TRUE(fs::is_symlink(link(i))) << i;
  const int file = ::open(path("a").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  fs::remove(link(40));
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), link(40));
  write_file(link(2), "and after");
  ::close(file);
  EXPECT_EQ(contents(path("a")), "before and after");
}

// A program that was started without standard input gets descriptor 0 for its first file.
TEST_F(WriteFile, DescriptorZeroIsAsGoodAsAnyOtherAndGivenBack) {
  std::ofstream(path(".ridgeline-" + std::to_string(::getpid()) + "-0")) << "another";
  const int input = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  const auto is_free = [] { return ::fcntl(STDIN_FILENO, F_GETFD) < 0; };
  ASSERT_TRUE(is_free());
  write_file(path("new"), "one");
  EXPECT_TRUE(is_free());
  write_file(path("new"), "two");
  EXPECT_TRUE(is_free());
  fs::create_hard_link(path("new"), path("too"));
  write_file(path("new"), "three");
  EXPECT_TRUE(is_free());
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  EXPECT_EQ(contents(path("too")), "three");
  fs::remove(path(".ridgeline-" + std::to_string(::getpid()) + "-0"));
  EXPECT_THAT(names(), ::testing::ElementsAre("new", "too"));
}

TEST_F(WriteFile, ADescriptorThatIsNotOpenIsAnErrorOfOutput) {
  try {
    write_file("/proc/self/fd/987654", "x");
    FAIL() << "there is none";
  } catch (const OutputError& error) {
    EXPECT_STREQ(error.what(), "/proc/self/fd/987654: cannot be written: Bad file descriptor");
  }
  EXPECT_THROW(write_file("/proc/self/fd/7x", "x"), UserError) << "no number";
  EXPECT_THROW(write_file("/proc/self/fd/", "x"), UserError) << "no name";
}

TEST_F(WriteFile, WhatWasPrintedBeforeComesBeforeOnTheSameDescriptor) {
  std::FILE* file = std::fopen(path("a").c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("printed, ", file);
  write_file("/dev/fd/" + std::to_string(::fileno(file)), "then written");
  std::fclose(file);
  EXPECT_EQ(contents(path("a")), "printed, then written");
}

TEST_F(WriteFile, ANameInTheFolderWhereTheProcessStandsNeedsNoFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file("plain", "one");
  write_file("plain", "two");
  fs::current_path(before);
  EXPECT_EQ(contents(path("plain")), "two");
  EXPECT_THAT(names(), ::testing::ElementsAre("plain"));
}

TEST_F(WriteFile, ANewFileHasTheModeThatTheProcessGivesFiles) {
  const mode_t before = ::umask(027);
  write_file(path("new"), "x");
  ::umask(before);
  EXPECT_EQ(fs::status(path("new")).permissions(), fs::perms(0640));
}

TEST_F(WriteFile, ANameEndingInGzIsCompressed) {
  write_file(path("a.gz"), "text");
  EXPECT_EQ(contents(path("a.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(read_text(path("a.gz")), "text");
}

}  // namespace
}  // namespace ridgeline
