// A large document delivered value by value; what is no document, or only half of one, is refused with its place.
#include "sim/trace/json_pieces.h"
#include "tests/support/temporary_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "sim/input/text_source.h"
#include "sim/output/write_file.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

std::string file_of(const std::string& text, const std::string& name = "pieces.json") {
  const std::string path = temporary_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// "key=value" of every piece, or the message of the error that ended them.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> out;
  try {
    JsonPieces pieces(file_of(text));
    JsonPiece piece;
    while (pieces.next(piece)) out.push_back(piece.key + (piece.element ? "[]=" : "=") + std::string(piece.text));
  } catch (const UserError& error) {
    out.push_back(std::string("error: ") + error.what());
  }
  return out;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JsonPieces, DeliversElementsOfArraysUnderTheRootAndOtherValuesWhole) {
  EXPECT_THAT(pieces_of(R"({"a": 1, "list": [{"x": [1, 2]}, 3, "four"], "empty": [], "b": {"c": [5]}})"),
              ElementsAre("a=1", R"(list[]={"x": [1, 2]})", "list[]=3", "list[]=\"four\"", R"(b={"c": [5]})"));
  EXPECT_THAT(pieces_of("[1, {\"a\": 2}]"), ElementsAre("[]=1", "[]={\"a\": 2}"));
}

TEST(JsonPieces, LooksForBracketsOutsideStringsOnly) {
  EXPECT_THAT(pieces_of(R"({"l": [{"name": "a } ] \" b"}, {"name": "\\"}]})"),
              ElementsAre(R"(l[]={"name": "a } ] \" b"})", R"(l[]={"name": "\\"})"));
}

TEST(JsonPieces, AnEmptyDocumentHasNoPiecesAndAnEmptyFileIsRefused) {
  EXPECT_THAT(pieces_of("{}"), ElementsAre());
  EXPECT_THAT(pieces_of("[]"), ElementsAre());
  EXPECT_THAT(pieces_of(""), ElementsAre(HasSubstr("is empty")));
  EXPECT_THAT(pieces_of(" \n "), ElementsAre(HasSubstr("nothing but white space")));
}

TEST(JsonPieces, SaysTheLineWhereTheTextStopsBeingJson) {
  EXPECT_THAT(pieces_of("{\"a\": 1,\n\"b\" 2}"),
              ElementsAre("a=1", HasSubstr("pieces.json:2: not JSON: expected ':'")));
  EXPECT_THAT(pieces_of("{\"a\": 1}\n{"), ElementsAre("a=1", HasSubstr(":2: not JSON: text after the end")));
  EXPECT_THAT(pieces_of("name,time\n"), ElementsAre(HasSubstr(":1: not JSON: it begins with 'n'")));
  EXPECT_THAT(pieces_of("\x80\x02}q"), ElementsAre(HasSubstr("byte 0x80")));
}

TEST(JsonPieces, EveryShorterTextIsRefusedAndNeverACrash) {
  const std::string whole = R"({"a": [1, {"b": "c\"d"}], "e": "f", "g": 2})";
  EXPECT_EQ(pieces_of(whole).size(), 4U);
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_THAT(pieces_of(whole.substr(0, length)).back(), HasSubstr("error: ")) << whole.substr(0, length);
}

TEST(JsonPieces, ValuesMayLieAcrossThePiecesInWhichAFileIsRead) {
  std::string text = "{\"list\": [";
  for (int i = 0; i < 60000; ++i) text += fmt::format("{}{{\"name\": \"{:0>100}\"}}\n", i > 0 ? "," : "", i);
  text += "]}";
  ASSERT_GT(text.size(), std::size_t{6} << 20);
  const auto all = pieces_of(text);
  ASSERT_EQ(all.size(), 60000U);
  EXPECT_THAT(all[45678], HasSubstr("45678\"}"));
}

// A file is read four megabytes at a time: a backslash may be the last character of a piece.
TEST(JsonPieces, EscapesMayLieAcrossThePiecesToo) {
  for (const char* lead : {"", " "}) {
    std::string value = "\"";
    for (int i = 0; i < 5'000'000; ++i) value += "\\\"";
    value += "\"";
    const auto all = pieces_of(std::string(lead) + "[" + value + ", 7]");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_TRUE(all[0] == "[]=" + value);
    EXPECT_EQ(all[1], "[]=7");
  }
}

TEST(JsonPieces, HalfACompressedFileIsRefused) {
  const std::string path = temporary_path("half.json.gz");
  std::string text = "[0";
  for (int i = 1; i < 100000; ++i) text += fmt::format(",\n{}", i * 7919 % 100003);
  write_file(path, text + "]");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  JsonPieces pieces(path);
  JsonPiece piece;
  try {
    while (pieces.next(piece)) {}
    FAIL() << "half a file was read";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("half.json.gz:"));
    EXPECT_THAT(error.what(), HasSubstr("damaged or ends too early"));
  }
}

}  // namespace
}  // namespace ridgeline::trace
