// JSON as text reads back as what was written.
#include "sim/report/json/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

TEST(JsonText, ReadsBack) {
  TextBuffer buffer;
  {
    JsonObject object(buffer);
    object.add("whole", std::int64_t{-7}).add("large", std::numeric_limits<std::uint64_t>::max()).add("yes", true);
    object.add("small", 1.0 / 3.0).add("huge", 1.5e300).add("none", std::numeric_limits<double>::infinity());
    object.add("name", std::string("a \"quoted\"\\ \n µ \x01")).add("null", nullptr);
    object.add_members(R"("more":[1,2])");
    object.add_with("inner", [](TextBuffer& out) { JsonObject(out).add("a", 1).add("b", "c"); });
    object.add_with("empty", [](TextBuffer& out) { const JsonObject inner(out); });
  }
  const auto told = nlohmann::json::parse(std::move(buffer).take());
  EXPECT_EQ(told["whole"], -7);
  EXPECT_EQ(told["large"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(told["yes"], true);
  EXPECT_EQ(told["small"].get<double>(), 1.0 / 3.0);
  EXPECT_EQ(told["huge"].get<double>(), 1.5e300);
  EXPECT_TRUE(told["none"].is_null() && told["null"].is_null());
  EXPECT_EQ(told["name"], "a \"quoted\"\\ \n µ \x01");
  EXPECT_EQ(told["more"], nlohmann::json::array({1, 2}));
  EXPECT_EQ(told["inner"]["b"], "c");
  EXPECT_TRUE(told["empty"].is_object());
}

TEST(JsonText, BytesThatAreNoTextAreReplaced) {
  TextBuffer buffer;
  append_json(buffer, std::string_view("a\xff\xfez"));
  EXPECT_EQ(nlohmann::json::parse(std::move(buffer).take()).get<std::string>(), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

// Wherever a byte that must be escaped stands, and next to whichever others.
TEST(JsonText, EveryByteIsEscapedWhereverItStands) {
  for (int byte = 0; byte < 0x100; ++byte)
    for (std::size_t length = 1; length < 20; ++length)
      for (std::size_t place = 0; place < length; ++place)
        for (const char around : {'a', '!', ' ', '~'}) {
          std::string text(length, around);
          text[place] = static_cast<char>(byte);
          TextBuffer buffer;
          append_json(buffer, text);
          ASSERT_EQ(std::move(buffer).take(),
                    nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
              << byte << " at " << place << " of " << length;
        }
}

TEST(JsonText, WholeNumbersAreWrittenAsOtherDoublesAre) {
  for (const double value : {0.0, -0.0, 1.0, -1.0, 7.0, 1e6, 123456789.0, 1e14, 999999999999999.0, 1e15, 1e16, 1e22,
                             -1e15, 0.5, 1e-7, 4503599627370497.5}) {
    TextBuffer buffer;
    append_json(buffer, value);
    EXPECT_EQ(std::move(buffer).take(), fmt::format("{}", value));
  }
}

// A time of whole nanoseconds is written as the double nearest to it would be.
TEST(JsonText, ThousandthsAreWrittenAsNumbers) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{7}, std::int64_t{40}, std::int64_t{900}, std::int64_t{1000}, std::int64_t{1010},
        std::int64_t{123456789}, std::int64_t{-1500}, std::int64_t{562949953421311}, std::int64_t{1} << 60}) {
    TextBuffer as_thousandths, as_double;
    append_thousandths(as_thousandths, value);
    append_json(as_double, static_cast<double>(value) / 1e3);
    EXPECT_EQ(std::move(as_thousandths).take(), std::move(as_double).take()) << value;
  }
}

TEST(TextBuffer, GrowsAndKeepsWhatWasAdded) {
  TextBuffer buffer(1);
  std::string whole;
  for (int i = 0; i < 1000; ++i) {
    buffer.add("text");
    buffer.add('!');
    whole += "text!";
    EXPECT_EQ(buffer.back(), '!');
  }
  EXPECT_EQ(buffer.size(), whole.size());
  EXPECT_EQ(std::move(buffer).take(), whole);
}

TEST(TextBuffer, ASinkGetsAllInPiecesAndInOrder) {
  std::string whole, got;
  std::size_t largest = 0, pieces = 0;
  TextBuffer buffer([&](std::string_view piece) {
    got += piece;
    largest = std::max(largest, piece.size());
    ++pieces;
  });
  buffer.expect(std::size_t{1} << 40);
  for (int i = 0; i < 400'000; ++i) {
    const std::string text = std::to_string(i) + (i % 1000 == 0 ? std::string(5000, 'x') : "");
    buffer.add(text);
    whole += text;
  }
  const std::string large(3 << 20, 'y');
  buffer.add(large);
  buffer.flush();
  EXPECT_EQ(got, whole + large);
  EXPECT_GE(pieces, 4u);
  EXPECT_LE(largest, large.size() + (1 << 20));
  EXPECT_EQ(buffer.size(), 0u);
}

}  // namespace
}  // namespace ridgeline
