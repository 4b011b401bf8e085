#include "sim/config/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "sim/config/parse_yaml.h"

namespace ridgeline::config {
namespace {

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// What reading key `v` of the one-line document "v: TEXT" with `read` complains about.
template <typename Read>
std::string complaint(const std::string& text, Read read) {
  const Node root = parse_yaml("v: " + text + "\n", "f.yaml");
  return error_of([&] { (void)read(Value{root}["v"]); });
}

enum class Color { red, green };
constexpr std::pair<std::string_view, Color> kColors[] = {{"red", Color::red}, {"green", Color::green}};

TEST(Value, typed_reads_give_what_was_written) {
  const Node root = parse_yaml("s: text\nt: true\ni: -7\nn: 50 %\nb: 20 MiB\nc: green\nl: [1, 2]\n", "f.yaml");
  const Mapping m(Value{root}, {"s", "t", "i", "n", "b", "c", "l", "x"});
  EXPECT_EQ(m["s"].text(), "text");
  EXPECT_TRUE(m["t"].boolean());
  EXPECT_EQ(m["i"].integer(), -7);
  EXPECT_DOUBLE_EQ(m["n"].number(), 0.5);
  EXPECT_EQ(m["b"].quantity<Bytes>().value(), 20 * kMiB);
  EXPECT_EQ(m["c"].choice<Color>(kColors), Color::green);
  EXPECT_EQ(m["l"].list()[1].integer(), 2);
  EXPECT_EQ(m["l"].list()[1].path(), "l.1");
}

TEST(Value, a_fallback_stands_in_for_an_absent_key_only) {
  const Node root = parse_yaml("i: 3\n", "f.yaml");
  const Mapping m(Value{root}, {"i", "x"});
  EXPECT_EQ(m["x"].integer({}, 9), 9);
  EXPECT_EQ(m["i"].integer({}, 9), 3);
  EXPECT_EQ(m["x"].text("none"), "none");
  EXPECT_TRUE(m["x"].boolean(true));
  EXPECT_DOUBLE_EQ(m["x"].number({}, 0.5), 0.5);
  EXPECT_EQ(m["x"].quantity<Bytes>({}, Bytes{1}).value(), 1);
  EXPECT_EQ(m["x"].choice<Color>(kColors, Color::red), Color::red);
  EXPECT_FALSE(m.has("x"));
}

TEST(Value, a_required_key_that_is_missing_is_named_at_its_mapping) {
  const Node root = parse_yaml("a: 1\nb:\n  c: 1\n", "f.yaml");
  const Mapping inner(Value{root}["b"], {"c", "d"});
  EXPECT_EQ(error_of([&] { (void)inner["d"].integer(); }), "f.yaml:3:3: b.d: missing; this key is required");
}

TEST(Mapping, an_unknown_key_is_reported_with_its_neighbours) {
  const Node root = parse_yaml("dram:\n  capacity: 1 GB\n  bandwith: 2 TB/s\n", "hw/x.yaml");
  EXPECT_EQ(error_of([&] {
              (void)Mapping(Value{root}["dram"], {"bandwidth", "capacity"});
            }),
            "hw/x.yaml:3:3: dram.bandwith: unknown key; did you mean bandwidth? Allowed: bandwidth, capacity");
  const Node far = parse_yaml("zzzzzz: 1\n", "f.yaml");
  EXPECT_EQ(error_of([&] { (void)Mapping(Value{far}, {"bandwidth"}); }),
            "f.yaml:1:1: zzzzzz: unknown key; expected one of bandwidth");
}

TEST(Mapping, reading_an_undeclared_key_is_our_own_bug) {
  const Node root = parse_yaml("a: 1\n", "f.yaml");
  const Mapping m(Value{root}, {"a"});
  EXPECT_THROW((void)m["b"], std::logic_error);
}

TEST(Value, a_quantity_without_or_with_a_wrong_unit_says_which_ones_fit) {
  const auto read = [](const Value& v) { return v.quantity<BytesPerSecond>(Range::positive()); };
  EXPECT_EQ(complaint("4.8", read),
            "f.yaml:1:4: v: '4.8' has no unit; expected a number with a unit (MB/s, GB/s, TB/s, GiB/s, TiB/s, Gbit/s)");
  EXPECT_EQ(
      complaint("4.8 TBs", read),
      "f.yaml:1:4: v: unknown unit 'TBs'; expected a number with a unit (MB/s, GB/s, TB/s, GiB/s, TiB/s, Gbit/s)");
  EXPECT_EQ(complaint("1e300 TB/s", read), "f.yaml:1:4: v: 1e300 TB/s is more than a number can hold");
  EXPECT_EQ(complaint("4.8 GHz", read),
            "f.yaml:1:4: v: unit 'GHz' measures something else; expected a number with a unit (MB/s, GB/s, TB/s, "
            "GiB/s, TiB/s, Gbit/s)");
  EXPECT_THAT(complaint("fast", read), ::testing::HasSubstr("expected a number with a unit"));
  EXPECT_THAT(complaint("[1 TB/s]", read), ::testing::HasSubstr("got a list"));
  EXPECT_THAT(complaint("{a: 1}", read), ::testing::HasSubstr("got a mapping"));
  EXPECT_EQ(complaint("1 TB/s", read), "no error");
}

TEST(Value, ranges_hold_at_their_ends) {
  const auto positive = [](const Value& v) { return v.quantity<Watts>(Range::positive()); };
  EXPECT_EQ(complaint("0 W", positive), "f.yaml:1:4: v: 0 W is out of range, expected above 0");
  EXPECT_EQ(complaint("-1 W", positive), "f.yaml:1:4: v: -1 W is out of range, expected above 0");
  EXPECT_EQ(complaint("0.001 W", positive), "no error");
  const auto share = [](const Value& v) { return v.number({0.0, 1.0}); };
  EXPECT_EQ(complaint("1", share), "no error");
  EXPECT_EQ(complaint("1.0001", share), "f.yaml:1:4: v: 1.0001 is out of range, expected at least 0 and at most 1");
  const auto batch = [](const Value& v) { return v.integer({1, 8}); };
  EXPECT_EQ(complaint("8", batch), "no error");
  EXPECT_EQ(complaint("9", batch), "f.yaml:1:4: v: 9 is out of range, expected 1 to 8");
  EXPECT_EQ(complaint("0", batch), "f.yaml:1:4: v: 0 is out of range, expected 1 to 8");
}

TEST(Value, numbers_that_are_none_are_refused) {
  const auto number = [](const Value& v) { return v.number(); };
  for (const char* text : {".nan", "nan", ".inf", "-.inf", "inf", "1e999", "'1,5'", "0x10", "true", "''", "~", ""}) {
    EXPECT_NE(complaint(text, number), "no error") << text;
  }
  const auto integer = [](const Value& v) { return v.integer(); };
  for (const char* text : {"1.5", "1e3", "1 MiB", "99999999999999999999", "true", "one", "~"}) {
    EXPECT_NE(complaint(text, integer), "no error") << text;
  }
  const auto boolean = [](const Value& v) { return v.boolean(); };
  for (const char* text : {"yes", "True", "1", "on"}) EXPECT_NE(complaint(text, boolean), "no error") << text;
}

TEST(Value, a_wrong_choice_shows_all_and_the_nearest) {
  EXPECT_EQ(complaint("gren", [](const Value& v) { return v.choice<Color>(kColors); }),
            "f.yaml:1:4: v: unknown value 'gren'; did you mean green? Allowed: red, green");
}

}  // namespace
}  // namespace ridgeline::config
