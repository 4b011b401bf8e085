// Every unit that is read and every step that is printed, with the edges between them; text that grows; rounded
// division.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/units/ceil_div.h"
#include "sim/units/nearest_name.h"
#include "sim/units/parse.h"
#include "sim/units/text_buffer.h"

namespace ridgeline::worked_units {
namespace {

using Steps = std::vector<std::pair<std::string, double>>;
const Steps kLarge{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
const Steps kBinary{{"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}};
const Steps kSmall{{"", 1}, {"m", 1e-3}, {"u", 1e-6}, {"µ", 1e-6}, {"n", 1e-9}, {"p", 1e-12}};

void expect_units(const std::string& base, Dimension dimension, const Steps& prefixes) {
  for (const auto& [prefix, factor] : prefixes) {
    const auto measure = parse_measure("3 " + prefix + base);
    ASSERT_TRUE(measure) << prefix << base;
    EXPECT_EQ(measure->dimension, dimension) << prefix << base;
    EXPECT_NEAR(measure->value, 3.0 * factor, 3e-15 * factor) << prefix << base;
  }
}
TEST(WorkedUnits, every_prefix_of_every_unit_is_read) {
  Steps bytes = kLarge;
  bytes.insert(bytes.end(), kBinary.begin(), kBinary.end());
  expect_units("B", Dimension::bytes, bytes);
  expect_units("B/s", Dimension::bytes_per_second, bytes);
  expect_units("B/cycle", Dimension::bytes_per_cycle, bytes);
  expect_units("bit/s", Dimension::bytes_per_second, {{"M", 125e3}, {"G", 125e6}, {"T", 125e9}});
  expect_units("FLOP", Dimension::flops, kLarge);
  expect_units("FLOP/s", Dimension::flops_per_second, kLarge);
  expect_units("FLOPS", Dimension::flops_per_second, kLarge);
  expect_units("Hz", Dimension::hertz, kLarge);
  expect_units("s", Dimension::seconds, kSmall);
  expect_units("J/FLOP", Dimension::joules_per_flop, kSmall);
  expect_units("J/B", Dimension::joules_per_byte, kSmall);
  expect_units("J", Dimension::joules,
               {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}});
  expect_units("W", Dimension::watts, {{"m", 1e-3}, {"", 1}, {"k", 1e3}, {"M", 1e6}});
  expect_units("cycle", Dimension::cycles, {{"", 1}});
  expect_units("cycles", Dimension::cycles, {{"", 1}});
  expect_units("%", Dimension::dimensionless, {{"", 0.01}});
  expect_units("x", Dimension::dimensionless, {{"", 1}});
  for (const char* none :
       {"3 kcycle", "3 bit/s", "3 kbit/s", "3 GW", "3 ks", "3 KiHz", "3 MiFLOP", "3 µJ", "3 k%", "3 kx"})
    EXPECT_FALSE(parse_measure(none)) << none;
}

// A step holds from 999.5 of the one below, which would be printed as 1000.
TEST(WorkedUnits, three_digits_are_printed_in_the_largest_step_that_is_not_above) {
  struct Row {
    Dimension dimension;
    std::vector<std::pair<double, std::string>> printed;
  };
  constexpr double kKi = 1024.0, kMi = 1048576.0, kGi = 1073741824.0, kTi = 1099511627776.0;
  const Row rows[]{
      {Dimension::bytes,
       {{0.5, "0.50 B"},
        {1023.0 * 0.999, "1022 B"},
        {kKi, "1.00 KiB"},
        {0.9994 * kMi, "1023 KiB"},
        {0.9996 * kMi, "1.00 MiB"},
        {2.5 * kGi, "2.50 GiB"},
        {0.9996 * kTi, "1.00 TiB"},
        {5e3 * kTi, "5000 TiB"}}},
      {Dimension::flops,
       {{3.0, "3.00 FLOP"},
        {0.9996e6, "1.00 MFLOP"},
        {4e4, "40000 FLOP"},
        {2e9, "2.00 GFLOP"},
        {3e12, "3.00 TFLOP"},
        {4e15, "4.00 PFLOP"}}},
      {Dimension::seconds,
       {{2.0, "2.00 s"},
        {0.9994, "999 ms"},
        {0.9996, "1.00 s"},
        {3e-3, "3.00 ms"},
        {4e-6, "4.00 us"},
        {5e-9, "5.00 ns"},
        {7e-12, "0.01 ns"}}},
      {Dimension::hertz,
       {{3.0, "3.00 Hz"}, {4e3, "4.00 kHz"}, {5e6, "5.00 MHz"}, {6e9, "6.00 GHz"}, {7e12, "7000 GHz"}}},
      {Dimension::bytes_per_second,
       {{3.0, "3.00 B/s"}, {4e3, "4.00 kB/s"}, {5e6, "5.00 MB/s"}, {6e9, "6.00 GB/s"}, {7e12, "7.00 TB/s"}}},
      {Dimension::flops_per_second,
       {{3e4, "30000 FLOP/s"},
        {4e6, "4.00 MFLOP/s"},
        {5e9, "5.00 GFLOP/s"},
        {6e12, "6.00 TFLOP/s"},
        {7e15, "7.00 PFLOP/s"}}},
      {Dimension::joules,
       {{3e3, "3.00 kJ"},
        {4.0, "4.00 J"},
        {5e-3, "5.00 mJ"},
        {6e-6, "6.00 uJ"},
        {7e-9, "7.00 nJ"},
        {8e-12, "8.00 pJ"}}},
      {Dimension::watts, {{3.0, "3.00 W"}, {4e-3, "4.00 mW"}, {3e3, "3000 W"}}},
      {Dimension::joules_per_flop, {{3.0, "3.00 J/FLOP"}, {4e-9, "4.00 nJ/FLOP"}, {5e-12, "5.00 pJ/FLOP"}}},
      {Dimension::joules_per_byte, {{3.0, "3.00 J/B"}, {4e-9, "4.00 nJ/B"}, {5e-12, "5.00 pJ/B"}}},
      {Dimension::cycles, {{29.0, "29 cycles"}, {1234567.0, "1.23457e+06 cycles"}}},
      {Dimension::bytes_per_cycle, {{128.5, "128.5 B/cycle"}}},
      {Dimension::dimensionless, {{0.1234567, "0.123457"}, {12.0, "12"}}}};
  for (const Row& row : rows)
    for (const auto& [number, text] : row.printed) {
      EXPECT_EQ(to_string(Measure{number, row.dimension}), text);
      if (text.find("e+") == std::string::npos) {
        EXPECT_EQ(to_string(Measure{-number, row.dimension}), "-" + text);
      }
    }
}

// 9.995 would be 10.00 with two digits behind the point, 99.95 100.0 with one.
TEST(WorkedUnits, digits_behind_the_point_leave_three_in_all) {
  EXPECT_EQ(to_string(Watts{1.0}), "1.00 W");
  EXPECT_EQ(to_string(Watts{9.99}), "9.99 W");
  EXPECT_EQ(to_string(Watts{9.9949}), "9.99 W");
  EXPECT_EQ(to_string(Watts{9.995}), "10.0 W");
  EXPECT_EQ(to_string(Watts{10.04}), "10.0 W");
  EXPECT_EQ(to_string(Watts{99.94}), "99.9 W");
  EXPECT_EQ(to_string(Watts{99.95}), "100 W");
  EXPECT_EQ(to_string(Watts{100.4}), "100 W");
  // Nothing is in the unit itself, whatever is smaller.
  EXPECT_EQ(to_string(Watts{0.0}), "0 W");
  EXPECT_EQ(to_string(Hertz{0.0}), "0 Hz");
  EXPECT_EQ(to_string(BytesPerSecond{0.0}), "0 B/s");
  EXPECT_EQ(to_string(FlopsPerSecond{0.0}), "0 FLOP/s");
  EXPECT_EQ(to_string(Measure{0.0, Dimension::joules}), "0 J");
  EXPECT_EQ(to_string(Measure{0.0, Dimension::joules_per_byte}), "0 J/B");
}

TEST(WorkedUnits, what_a_dimension_accepts_is_read_as_that_dimension) {
  for (int i = 0; i <= static_cast<int>(Dimension::joules_per_byte); ++i) {
    const auto dimension = static_cast<Dimension>(i);
    const std::string_view accepted = accepted_units(dimension);
    ASSERT_FALSE(accepted.empty()) << i;
    if (dimension == Dimension::dimensionless) continue;  // in words
    for (std::size_t at = 0; at < accepted.size();) {
      const std::size_t end = std::min(accepted.find(", ", at), accepted.size());
      const auto measure = parse_measure("2 " + std::string(accepted.substr(at, end - at)));
      ASSERT_TRUE(measure) << accepted << " at " << at;
      EXPECT_EQ(measure->dimension, dimension) << accepted;
      at = end + 2;
    }
  }
  EXPECT_EQ(accepted_units(Dimension::dimensionless), "a plain number or %");
}

TEST(WorkedUnits, blanks_of_every_kind_are_left_out_and_one_sign_is_read) {
  for (const char* text : {"5 W", "5W", "\t5\tW\t", "\r\n5 W\n", "+5 W", " + 5 W"}) {
    const auto measure = parse_measure(text);
    if (std::string_view(text) == " + 5 W") {
      EXPECT_FALSE(measure) << "a sign stands before its number";
      continue;
    }
    ASSERT_TRUE(measure) << text;
    EXPECT_EQ(measure->value, 5.0);
  }
  EXPECT_EQ(parse_measure("-5 W")->value, -5.0);
  EXPECT_FALSE(parse_measure("--5 W"));
  EXPECT_FALSE(parse_measure("+-5 W"));
}

// Text that is only added to: by letters, by pieces, in room that is asked for; longer than what was expected.
TEST(WorkedUnits, a_text_grows_by_what_is_added) {
  for (const std::size_t expected :
       {std::size_t{0}, std::size_t{255}, std::size_t{256}, std::size_t{257}, std::size_t{5000}}) {
    TextBuffer buffer(expected);
    std::string plain;
    EXPECT_EQ(buffer.size(), 0u);
    for (int i = 0; i < 300; ++i) {
      const char letter = static_cast<char>('a' + i % 26);
      buffer.add(letter);
      plain += letter;
      EXPECT_EQ(buffer.back(), letter);
      const std::string piece(static_cast<std::size_t>(i % 7), 'x');
      buffer.add(piece);
      plain += piece;
      char* room = buffer.room(10);
      room[0] = '1', room[1] = '2', room[2] = '3';
      buffer.wrote(room + 2);
      plain += "12";
      ASSERT_EQ(buffer.size(), plain.size());
    }
    buffer.add(std::string(3000, 'y'));
    EXPECT_EQ(std::move(buffer).take(), plain + std::string(3000, 'y'));
  }
}

TEST(WorkedUnits, division_is_rounded_up) {
  EXPECT_EQ(ceil_div(0, 7), 0);
  EXPECT_EQ(ceil_div(1, 7), 1);
  EXPECT_EQ(ceil_div(7, 7), 1);
  EXPECT_EQ(ceil_div(8, 7), 2);
  EXPECT_EQ(ceil_div(std::int64_t{1} << 40, 3), 366503875926);
  EXPECT_EQ(ceil_div(7.0, 7.0), 1.0);
  EXPECT_EQ(ceil_div(7.1, 7.0), 2.0);
  EXPECT_EQ(ceil_div(0.3, 0.1), 3.0) << "though the quotient is rounded above 3 it is 3";
  EXPECT_EQ(ceil_div(0.6, 0.2), 3.0);
  EXPECT_EQ(ceil_div(8, 2.5), 4.0);
  EXPECT_EQ(ceil_div(0.0, 2.5), 0.0);
}

TEST(WorkedUnits, letters_are_counted_that_differ) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abcd", "bcd"), 1u);
  EXPECT_EQ(edit_distance("bcd", "abcd"), 1u);
  EXPECT_EQ(edit_distance("abc", "acb"), 2u);
  EXPECT_EQ(edit_distance("abcdef", "azced"), 3u);
  EXPECT_EQ(in_small_letters("AZaz09-[@"), "azaz09-[@");
  EXPECT_TRUE(abbreviates("abc", "xABCx"));
  EXPECT_FALSE(abbreviates("ab", "xABx"));
  EXPECT_FALSE(abbreviates("abd", "xABCx"));
  const std::vector<std::string> names{"abc-long-one", "xyz-abc", "abd"};
  EXPECT_EQ(nearest_name("abc", names), "xyz-abc") << "of those that it abbreviates the nearest";
  EXPECT_EQ(nearest_name("abe", names), "abd");
  EXPECT_EQ(nearest_name("ab", names), "abd");
  const std::vector<std::string> alike{"cat", "bat"};
  EXPECT_EQ(nearest_name("rat", alike), "cat") << "of names as near the first";
}

}  // namespace
}  // namespace ridgeline::worked_units
