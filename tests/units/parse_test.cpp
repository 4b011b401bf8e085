#include "sim/units/parse.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

double value(std::string_view text, Dimension dimension) {
  const auto measure = parse_measure(text);
  if (!measure) {
    ADD_FAILURE() << text << " was not understood";
    return -1;
  }
  EXPECT_EQ(measure->dimension, dimension) << text;
  return measure->value;
}

TEST(ParseMeasure, prefixes_of_bytes_are_decimal_unless_they_say_i) {
  EXPECT_EQ(value("1 kB", Dimension::bytes), 1000);
  EXPECT_EQ(value("1 KiB", Dimension::bytes), 1024);
  EXPECT_EQ(value("50 MiB", Dimension::bytes), 50 * kMiB);
  EXPECT_EQ(value("80 GB", Dimension::bytes), 80e9);
  EXPECT_EQ(value("80 GiB", Dimension::bytes), 80 * kGiB);
}

TEST(ParseMeasure, every_dimension_has_its_units) {
  EXPECT_DOUBLE_EQ(value("3.35 TB/s", Dimension::bytes_per_second), 3.35e12);
  EXPECT_DOUBLE_EQ(value("1.98 GHz", Dimension::hertz), 1.98e9);
  EXPECT_DOUBLE_EQ(value("29 cycles", Dimension::cycles), 29);
  EXPECT_DOUBLE_EQ(value("1 cycle", Dimension::cycles), 1);
  EXPECT_DOUBLE_EQ(value("128 B/cycle", Dimension::bytes_per_cycle), 128);
  EXPECT_DOUBLE_EQ(value("989 TFLOP/s", Dimension::flops_per_second), 989e12);
  EXPECT_DOUBLE_EQ(value("989 TFLOPS", Dimension::flops_per_second), 989e12);
  EXPECT_DOUBLE_EQ(value("2 GFLOP", Dimension::flops), 2e9);
  EXPECT_DOUBLE_EQ(value("0.75 us", Dimension::seconds), 0.75e-6);
  EXPECT_DOUBLE_EQ(value("0.75 µs", Dimension::seconds), 0.75e-6);
  EXPECT_DOUBLE_EQ(value("700 W", Dimension::watts), 700);
  EXPECT_DOUBLE_EQ(value("0.91 pJ/FLOP", Dimension::joules_per_flop), 0.91e-12);
  EXPECT_DOUBLE_EQ(value("117 pJ/B", Dimension::joules_per_byte), 117e-12);
  EXPECT_DOUBLE_EQ(value("3 kJ", Dimension::joules), 3000);
  EXPECT_DOUBLE_EQ(value("12 %", Dimension::dimensionless), 0.12);
  EXPECT_DOUBLE_EQ(value("1.5", Dimension::dimensionless), 1.5);
}

TEST(ParseMeasure, small_units_give_the_double_nearest_to_the_written_number) {
  EXPECT_EQ(value("730 ns", Dimension::seconds), 730e-9);
  EXPECT_EQ(value("1.1 us", Dimension::seconds), 1.1e-6);
  EXPECT_EQ(value("12 %", Dimension::dimensionless), 0.12);
}

TEST(ParseMeasure, spaces_and_signs_are_free) {
  EXPECT_DOUBLE_EQ(value("  4.8TB/s ", Dimension::bytes_per_second), 4.8e12);
  EXPECT_DOUBLE_EQ(value("+2 us", Dimension::seconds), 2e-6);
  EXPECT_DOUBLE_EQ(value("-3 W", Dimension::watts), -3);
  EXPECT_DOUBLE_EQ(value("1.6e9", Dimension::dimensionless), 1.6e9);
}

TEST(ParseMeasure, everything_else_is_refused) {
  for (const char* text : {"", " ", "TB/s", "4.8 TB/S", "4.8 tb/s", "4,8 TB/s", "nan", "inf", "-inf", "nan GB", "1e400",
                           "0x10", "4.8 4.8", "4.8 TB s", "1 mB", "1 Kb", "+-1", "++1", "1e308 TB"}) {
    EXPECT_FALSE(parse_measure(text)) << "'" << text << "'";
  }
}

TEST(ParseMeasure, printed_quantities_read_back_to_three_digits) {
  const Measure measures[] = {{4.19 * kMiB, Dimension::bytes},
                              {1.23e-5, Dimension::seconds},
                              {1.98e9, Dimension::hertz},
                              {4.8e12, Dimension::bytes_per_second},
                              {989e12, Dimension::flops_per_second},
                              {700, Dimension::watts},
                              {0.91e-12, Dimension::joules_per_flop},
                              {117e-12, Dimension::joules_per_byte},
                              {29, Dimension::cycles},
                              {0.56, Dimension::dimensionless},
                              {128, Dimension::bytes_per_cycle},
                              {3e9, Dimension::flops},
                              {2e-3, Dimension::joules}};
  for (const Measure& measure : measures) {
    const auto again = parse_measure(to_string(measure));
    ASSERT_TRUE(again) << to_string(measure);
    EXPECT_EQ(again->dimension, measure.dimension) << to_string(measure);
    EXPECT_NEAR(again->value, measure.value, measure.value * 0.005) << to_string(measure);
  }
}

TEST(PrintMeasure, the_unit_changes_where_four_digits_would_be_needed) {
  EXPECT_EQ(to_string(Bytes{4.19 * kMiB}), "4.19 MiB");
  EXPECT_EQ(to_string(Seconds{12.3e-6}), "12.3 us");
  EXPECT_EQ(to_string(Seconds{999.4e-6}), "999 us");
  EXPECT_EQ(to_string(Seconds{999.6e-6}), "1.00 ms");
  EXPECT_EQ(to_string(BytesPerSecond{4.8e12}), "4.80 TB/s");
  EXPECT_EQ(to_string(FlopsPerSecond{989.4e12}), "989 TFLOP/s");
  EXPECT_EQ(to_string(Watts{700}), "700 W");
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Seconds{0}), "0 s");
  EXPECT_EQ(to_string(Bytes{-2 * kGiB}), "-2.00 GiB");
}

}  // namespace
}  // namespace ridgeline
