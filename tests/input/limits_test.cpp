// What is too long, too deep or grows too much is refused in a sentence instead of filling the memory.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/input/json_depth.h"
#include "sim/input/lines.h"
#include "sim/input/text_source.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

void write_gzip(const std::string& path, std::string_view piece, std::int64_t pieces) {
  boost::iostreams::filtering_ostream out;
  out.push(boost::iostreams::gzip_compressor());
  out.push(boost::iostreams::file_sink(path, std::ios::binary));
  for (std::int64_t i = 0; i < pieces; ++i) out << piece;
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Limits, gzip_that_expands_beyond_reason_is_refused) {
  const std::string file = temporary_path("blanks.gz");
  const std::string line(1 << 16, ' ');
  write_gzip(file, line + "\n", kFreeText / (1 << 16) + 100);
  EXPECT_NE(refusal([&] { read_text(file); }).find("expand to more than 64 MiB"), std::string::npos);
  EXPECT_NE(refusal([&] { for_each_line(file, [](std::string_view) {}); }), "");
}

TEST(Limits, as_much_gzip_that_shrinks_as_recordings_do_is_read) {
  const std::string file = temporary_path("recording.gz");
  std::string piece;
  for (int i = 0; i < 20000; ++i) piece += std::to_string(i * 2654435761u) + ",\"name\"\n";
  const std::int64_t pieces = 2 * kFreeText / static_cast<std::int64_t>(piece.size());
  write_gzip(file, piece, pieces);
  std::int64_t lines = 0;
  for_each_line(file, [&](std::string_view) { ++lines; });
  EXPECT_EQ(lines, 20000 * pieces);
}

TEST(Limits, a_line_without_an_end_is_refused) {
  const std::string file = temporary_path("line.jsonl");
  const auto with = [&](std::size_t bytes) {
    std::ofstream(file) << "first\n" << std::string(bytes, 'x') << "\nlast\n";
    return refusal([&] { for_each_line(file, [](std::string_view) {}); });
  };
  EXPECT_EQ(with(kLongestLine / 2), "");
  EXPECT_NE(with(kLongestLine + (8u << 20)).find("line.jsonl:2: a line of more than 64 MiB"), std::string::npos);
}

/// What `read` makes of text that a thread writes into a pipe of this name.
template <typename Read>
auto through_pipe(const std::string& name, std::string_view piece, std::int64_t pieces, Read read) {
  const std::string pipe = temporary_path(name);
  EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream out(pipe, std::ios::binary);
    for (std::int64_t i = 0; i < pieces && out; ++i) out << piece;
  });
  const auto answer = read(pipe);
  writer.join();
  return answer;
}

TEST(Limits, a_pipe_is_read_as_a_file_is) {
  const std::string line(1021, 'z');
  const std::int64_t lines = kFreeText / 1022 + 5000;
  const auto count = [](const std::string& path) {
    std::int64_t seen = 0;
    for_each_line(path, [&](std::string_view text) { seen += text.size() == 1021 ? 1 : 0; });
    return seen;
  };
  EXPECT_EQ(through_pipe("plain", line + "\n", lines, count), lines);
  EXPECT_EQ(through_pipe("two", "a\n", 1, [](const std::string& path) { return read_text(path); }), "a\n");
  EXPECT_EQ(through_pipe("one", "a", 1, [](const std::string& path) { return read_text(path); }), "a");

  const std::string file = temporary_path("piped.gz");
  write_gzip(file, line + "\n", 1000);
  std::ifstream in(file, std::ios::binary);
  const std::string compressed(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(through_pipe("compressed", compressed, 1, count), 1000);
}

TEST(Limits, lines_of_a_stream_come_one_by_one_and_end) {
  std::vector<std::string> seen;
  const auto keep = [&](std::string_view line) { seen.emplace_back(line); };
  std::istringstream in("\xef\xbb\xbfone\n\ntwo\nthree");
  for_each_line(in, "standard input", keep);
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", "three"}));

  const auto refused = [&](std::string text) {
    std::istringstream stream(std::move(text));
    return refusal([&] { for_each_line(stream, "standard input", [](std::string_view) {}); });
  };
  EXPECT_EQ(refused("first\n" + std::string(kLongestLine + 1, 'x')), "standard input:2: a line of more than 64 MiB");
  EXPECT_EQ(refused("first\n" + std::string(kLongestLine, 'x')), "");
  EXPECT_NE(refused("\x1f\x8b\b").find("gzip is read from files only"), std::string::npos);
}

TEST(Limits, lines_are_whole_wherever_pieces_end) {
  const std::string file = temporary_path("lines.txt");
  std::ofstream out(file);
  const std::string text(1021, 'y');
  for (int i = 0; i < 9000; ++i) out << text << "\n" << (i % 7 == 0 ? "\n" : "");
  out << "end";
  out.close();
  std::size_t lines = 0;
  std::string last;
  for_each_line(file, [&](std::string_view line) {
    if (line != "end") {
      EXPECT_EQ(line, text);
    }
    last = line;
    ++lines;
  });
  EXPECT_EQ(lines, 9001u);
  EXPECT_EQ(last, "end");
}

TEST(Limits, json_nests_sixty_four_levels_and_no_more) {
  const auto nested = [](int levels) { return std::string(levels, '[') + "1" + std::string(levels, ']'); };
  EXPECT_NO_THROW(check_json_depth(nested(kDeepestJson)));
  EXPECT_THROW(check_json_depth(nested(kDeepestJson + 1)), UserError);
  EXPECT_NO_THROW(check_json_depth("{\"a\": \"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"}"));
  EXPECT_THROW(check_json_depth(std::string(60000, '{')), UserError);  // never closed
}

TEST(JsonMistake, IsToldWithoutTheLibrarysWords) {
  EXPECT_EQ(
      json_mistake("[json.exception.parse_error.101] parse error at line 1, column 10: syntax error while parsing "
                   "value - invalid literal; last read: 'tru}'"),
      "line 1, column 10: invalid literal; last read: 'tru}'");
  EXPECT_EQ(json_mistake("[json.exception.type_error.302] type must be number, but is string"),
            "type must be number, but is string");
  EXPECT_EQ(json_mistake("[json.exception.parse_error.113] parse error at byte 5: syntax error"),
            "byte 5: syntax error");
  EXPECT_EQ(json_mistake("something else - whatever"), "something else - whatever");
}

}  // namespace
}  // namespace ridgeline
