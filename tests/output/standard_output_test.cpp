#include "sim/output/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "sim/output/output_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

TEST(StandardOutput, shows_controls_of_somebody_elses_text_instead_of_obeying_them) {
  EXPECT_EQ(without_controls("a\x1b[31mred\x07\r\x7f"), "a^[[31mred^G^M^?");
  EXPECT_EQ(without_controls(std::string_view("nul\0end", 7)), "nul^@end");
}

TEST(StandardOutput, leaves_lines_tabulators_and_other_languages_as_they_are) {
  const char* text = "a\tb\nµs · Größe 時間\n";
  EXPECT_EQ(without_controls(text), text);
}

// As `cat -v` shows them: ^@ to ^_ for 0 to 31, ^? for 127, of which the tabulator and the end of a line stay.
TEST(StandardOutput, of_all_bytes_the_controls_alone_are_shown) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    std::string shown = one;
    if (byte == 127) shown = "^?";
    else if (byte >= 128) shown = "\xef\xbf\xbd";  // no character begins and ends with it
    else if (byte < 32 && byte != 9 && byte != 10) shown = std::string("^") + "@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"[byte];
    EXPECT_EQ(without_controls(one), shown) << byte;
  }
}

// U+009B alone begins a terminal's escape sequence as ESC [ does.
TEST(StandardOutput, shows_the_controls_beyond_ascii_too) {
  EXPECT_EQ(without_controls("a\u009b31mred\u0080\u009f"), "a<U+009B>31mred<U+0080><U+009F>");
  EXPECT_EQ(without_controls("\u00a0\u00e9"), "\u00a0\u00e9");
}

TEST(StandardOutput, is_utf8_whatever_it_is_given) {
  EXPECT_EQ(without_controls("a\xff"
                             "b\xe6\x99"),
            "a\ufffd"
            "b\ufffd\ufffd");
}

/// Standard output leads to `path` as long as it lives.
class Redirected {
 public:
  explicit Redirected(const std::string& path) {
    std::fflush(stdout);
    before_ = ::dup(STDOUT_FILENO);
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::close(file);
  }
  ~Redirected() {
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
    std::clearerr(stdout);
    std::cout.clear();
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int before_ = -1;
};

std::string what_file(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  for (int c = 0; file != nullptr && (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  if (file != nullptr) std::fclose(file);
  return text;
}

template <class Do>
std::string error_of(const std::string& path, const Do& something) {
  const Redirected away(path);
  try {
    something();
  } catch (const OutputError& error) {
    return error.what();
  }
  return "none";
}

TEST(StandardOutput, what_is_printed_arrives_with_and_without_its_controls) {
  const std::string path = temporary_path("printed");
  EXPECT_EQ(error_of(path,
                     [] {
                       print_text("one\x1b\n");
                       print_as_it_is("two\x1b\n");
                       print("{}{}\n", "three\r", 4);
                       std::cout << "five";
                       finish_output();
                     }),
            "none");
  EXPECT_EQ(what_file(path), "one^[\ntwo\x1b\nthree^M4\nfive");
}

TEST(StandardOutput, a_full_disk_is_told_at_the_end_or_as_soon_as_nothing_more_is_taken) {
  const std::string full = "standard output: cannot be written: No space left on device";
  EXPECT_EQ(error_of("/dev/full", [] { finish_output(); }), "none") << "nothing was printed";
  EXPECT_EQ(error_of("/dev/full",
                     [] {
                       print_text("held back");
                       finish_output();
                     }),
            full);
  EXPECT_EQ(error_of("/dev/full", [] { print_text(std::string(1 << 20, 'x')); }), full) << "more than is held back";
  EXPECT_EQ(error_of("/dev/full",
                     [] {
                       std::cout << "from elsewhere";
                       finish_output();
                     }),
            full);
}

// The error was told where it happened and nothing is left to write: its reason is not known any more.
TEST(StandardOutput, an_error_before_is_an_error_at_the_end) {
  EXPECT_EQ(error_of("/dev/full",
                     [] {
                       std::fputs("held back", stdout);
                       EXPECT_NE(std::fflush(stdout), 0);
                       finish_output();
                     }),
            "standard output: cannot be written");
  EXPECT_EQ(error_of("/dev/null",
                     [] {
                       std::cout.setstate(std::ios::badbit);
                       finish_output();
                     }),
            "standard output: cannot be written");
}

}  // namespace
}  // namespace ridgeline
