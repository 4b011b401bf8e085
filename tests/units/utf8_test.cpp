#include "sim/units/utf8.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

TEST(Utf8, CharactersOfEveryLengthAreKnown) {
  for (const char* text :
       {"", "a", "\u007f", "\u0080", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff", "\ud7ff\ue000"})
    EXPECT_EQ(first_not_utf8(text), kNone) << text;
}

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF, no byte that stands alone.
TEST(Utf8, TheFirstByteThatBelongsToNoCharacterIsNamed) {
  const struct {
    std::string_view text;
    std::size_t at;
  } cases[] = {{"\xff", 0},          {"ab\x80", 2},       {"\xc0\x80", 0},         {"\xc1\xbf", 0},
               {"a\xe0\x80\x80", 1}, {"\xed\xa0\x80", 0}, {"\xf4\x90\x80\x80", 0}, {"\xf8\x88\x80\x80\x80", 0},
               {"\u00e9\xc3", 2},    {"\xe2\x82z", 0},    {"\xf0\x9f\x98", 0}};
  for (const auto& [text, at] : cases) EXPECT_EQ(first_not_utf8(text), at) << text;
}

TEST(Utf8, EachWrongByteIsReplacedAndTheRestKept) {
  EXPECT_EQ(as_utf8("a\xff\xfe"
                    "b\u00e9"),
            "a\ufffd\ufffdb\u00e9");
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second), 'z'};
      EXPECT_EQ(first_not_utf8(as_utf8(text)), kNone) << first << " " << second;
      EXPECT_TRUE(as_utf8(text).ends_with('z'));
    }
}

}  // namespace
}  // namespace ridgeline
