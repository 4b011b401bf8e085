// A descriptor that takes little at a time, is interrupted, or takes nothing at all.
#include "sim/output/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace ridgeline {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    close_reading();
    close_writing();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_reading() { close_end(0); }
  void close_writing() { close_end(1); }
  [[nodiscard]] std::string rest() const {
    std::string text;
    char piece[8192];
    for (ssize_t count = 0; (count = ::read(ends[0], piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<std::size_t>(count));
    return text;
  }

 private:
  void close_end(int which) {
    if (ends[which] >= 0) ::close(std::exchange(ends[which], -1));
  }
};

std::string numbered(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + ' ';
  return text;
}

// A pipe holds 64 KiB: three times as much needs several calls and a reader.
TEST(WriteAll, TextThatIsTakenInPiecesArrivesWholeAndInOrder) {
  Pipe pipe;
  const std::string text = numbered(200'000);
  std::string got;
  std::thread reader([&] { got = pipe.rest(); });
  EXPECT_EQ(write_all(pipe.ends[1], text), 0);
  pipe.close_writing();
  reader.join();
  EXPECT_EQ(got, text);
}

TEST(WriteAll, NothingToWriteIsWrittenAnywhere) {
  EXPECT_EQ(write_all(-1, ""), 0);
  EXPECT_EQ(write_all(-1, "x"), EBADF);
}

TEST(WriteAll, ASignalThatInterruptsIsNoError) {
  Pipe pipe;
  struct sigaction quiet {
  }, before{};
  quiet.sa_handler = [](int) {};  // without SA_RESTART: the call that waits ends with EINTR
  ::sigaction(SIGALRM, &quiet, &before);
  const std::string text = numbered(150'000);
  std::string got;
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);  // the reader inherits it, so that the writer gets the signals
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    got = pipe.rest();
  });
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  const itimerval often{{0, 5000}, {0, 5000}}, never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_EQ(write_all(pipe.ends[1], text), 0);
  ::setitimer(ITIMER_REAL, &never, nullptr);
  pipe.close_writing();
  reader.join();
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(got, text);
}

TEST(WriteAll, AnErrorIsToldWithItsNumberAndEndsTheWriting) {
  Pipe full;
  ASSERT_EQ(::fcntl(full.ends[1], F_SETFL, O_NONBLOCK), 0);
  const int held = ::fcntl(full.ends[1], F_GETPIPE_SZ);
  ASSERT_GT(held, 0);
  EXPECT_EQ(write_all(full.ends[1], std::string(static_cast<std::size_t>(held), 'x')), 0) << "as much as it holds";
  EXPECT_EQ(write_all(full.ends[1], "x"), EAGAIN);

  Pipe gone;
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  gone.close_reading();
  EXPECT_EQ(write_all(gone.ends[1], "x"), EPIPE);
  std::signal(SIGPIPE, handler);

  const int device = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(device, 0);
  EXPECT_EQ(write_all(device, "x"), ENOSPC);
  ::close(device);
}

}  // namespace
}  // namespace ridgeline
