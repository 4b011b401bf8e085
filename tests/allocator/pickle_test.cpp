// The files in pickles/ were written by Python 3.11's pickle at the protocol in their name.
#include "sim/allocator/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sim/allocator/history.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using Value = PickleValue;

std::string error_of(const std::string& bytes) {
  try {
    read_pickle(bytes, "a.pickle");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}
std::int64_t number(const Value& value) { return std::get<std::int64_t>(value.value); }
const std::vector<Value>& items(const Value* value) { return value->as_sequence()->items; }

class WrittenByPython : public testing::TestWithParam<int> {};

TEST_P(WrittenByPython, values_come_back) {
  const std::string path = RIDGELINE_SOURCE_DIR "/tests/allocator/pickles/values-" + std::to_string(GetParam());
  const Value root = read_pickle(history_bytes(path + ".pickle"), path);
  const PickleDict& dict = *root.as_dict();
  const std::vector<std::int64_t> expected = {0,
                                              255,
                                              256,
                                              65535,
                                              65536,
                                              -1,
                                              2147483647,
                                              -2147483648,
                                              2147483648,
                                              std::int64_t{1} << 62,
                                              std::numeric_limits<std::int64_t>::min()};
  std::vector<std::int64_t> integers;
  for (const Value& value : items(dict.find("integers"))) integers.push_back(number(value));
  EXPECT_EQ(integers, expected);
  EXPECT_EQ(std::get<double>(dict.find("float")->value), -1.5);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(dict.find("none")->value));
  EXPECT_TRUE(std::get<bool>(items(dict.find("truths"))[0].value));
  EXPECT_FALSE(std::get<bool>(items(dict.find("truths"))[1].value));
  EXPECT_EQ(*dict.find("text")->as_text(), "Größe");
  for (std::size_t n = 0; n < 5; ++n) {
    const Value& tuple = items(dict.find("tuples"))[n];
    EXPECT_TRUE(tuple.as_sequence()->is_tuple);
    EXPECT_EQ(tuple.as_sequence()->items.size(), n);
  }
  EXPECT_EQ(items(dict.find("twice"))[0].as_sequence(), items(dict.find("twice"))[1].as_sequence());
  EXPECT_EQ(number(items(&items(dict.find("twice"))[1])[1]), 2);
  ASSERT_EQ(items(dict.find("long")).size(), 2500u);  // written in three batches
  EXPECT_EQ(number(items(dict.find("long"))[2499]), 2499);
  EXPECT_EQ(dict.find("no such key"), nullptr);
}

TEST_P(WrittenByPython, a_file_cut_anywhere_is_refused) {
  const std::string path = RIDGELINE_SOURCE_DIR "/tests/allocator/pickles/snapshot-" + std::to_string(GetParam());
  const std::string bytes = history_bytes(path + ".pickle");
  EXPECT_NO_THROW(read_pickle(bytes, path));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(read_pickle(std::string_view(bytes).substr(0, length), path), UserError) << length;
}

TEST_P(WrittenByPython, a_file_with_any_byte_changed_is_read_or_refused) {
  const std::string path = RIDGELINE_SOURCE_DIR "/tests/allocator/pickles/snapshot-" + std::to_string(GetParam());
  const std::string bytes = history_bytes(path + ".pickle");
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      try {
        read_pickle(changed, path);
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(Protocols, WrittenByPython, testing::Values(0, 1, 2, 4, 5));

TEST(Pickle, what_is_written_reads_back_and_writes_the_same_again) {
  const Value shared = Value::list({Value::integer(7)});
  std::vector<Value> numbers;
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{255}, std::int64_t{256}, std::int64_t{-1}, std::int64_t{1} << 31,
        -(std::int64_t{1} << 31), std::numeric_limits<std::int64_t>::max()})
    numbers.push_back(Value::integer(n));
  const Value value = Value::dict(
      {{Value::text("numbers"), Value::list(numbers)},
       {Value::text("twice"), Value::tuple({shared, shared})},
       {Value::text("rest"), Value::list({Value{0.25}, Value{}, Value::boolean(true), Value::boolean(false),
                                          Value::text("rest"), Value::dict(), Value::list(), Value::tuple({})})}});
  const std::string bytes = write_pickle(value);
  const Value back = read_pickle(bytes, "a.pickle");
  EXPECT_EQ(write_pickle(back), bytes);
  EXPECT_EQ(number(items(back.as_dict()->find("numbers"))[6]), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(items(back.as_dict()->find("twice"))[0].as_sequence(),
            items(back.as_dict()->find("twice"))[1].as_sequence());
}

TEST(Pickle, refuses_whatever_would_run_python_and_says_where) {
  EXPECT_EQ(error_of("\x80\x02"
                     "cos\nsystem\n."),
            "a.pickle: offset 2: GLOBAL would run Python code; only plain data is read");
  EXPECT_THAT(error_of("\x80\x04N\x93."), HasSubstr("offset 3: STACK_GLOBAL"));
  EXPECT_THAT(error_of("\x80\x04NR."), HasSubstr("offset 3: REDUCE"));
  EXPECT_THAT(error_of("\x80\x04Nb."), HasSubstr("offset 3: BUILD"));
  EXPECT_THAT(error_of("\x80\x04N\xfe."), HasSubstr("offset 3: unknown opcode 0xfe"));
}

TEST(Pickle, refuses_lengths_beyond_the_file_and_numbers_never_remembered) {
  EXPECT_THAT(error_of(std::string("\x80\x04X\xff\xff\xff\xff.")), HasSubstr("offset 2: the file ends inside a value"));
  EXPECT_THAT(error_of("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("the file ends inside"));
  EXPECT_THAT(error_of("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("a frame reaches beyond"));
  EXPECT_THAT(error_of("\x80\x04h\x05."), HasSubstr("nothing was remembered as number 5"));
  EXPECT_THAT(error_of("\x80\x04\x8a\x09xxxxx."), HasSubstr("the file ends inside"));
  EXPECT_THAT(error_of("\x80\x06N."), HasSubstr("pickle protocol 6"));
  EXPECT_THAT(error_of("\x80\x04(N."), HasSubstr("unfinished"));
  EXPECT_THAT(error_of("\x80\x04t."), HasSubstr("a mark is missing"));
  EXPECT_THAT(error_of("\x80\x04}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(error_of("\x80\x04NNa."), HasSubstr("no list to append to"));
}

TEST(Pickle, refuses_values_inside_themselves_and_nesting_without_end) {
  EXPECT_THAT(error_of("\x80\x04]q\x01h\x01"
                       "a."),
              HasSubstr("contains itself"));
  const auto nested = [](int depth) {
    return "\x80\x04" + std::string(static_cast<std::size_t>(depth), ']') +
           std::string(static_cast<std::size_t>(depth - 1), 'a') + ".";
  };
  EXPECT_EQ(error_of(nested(kPickleDepth)), "");
  EXPECT_THAT(error_of(nested(kPickleDepth + 1)), HasSubstr("more than 100 values inside each other"));
  EXPECT_THAT(error_of(nested(1000000)), HasSubstr("more than 100 values inside each other"));
}

TEST(Pickle, IntegersBeyond64BitsBecomeDoubles) {
  const auto integer = [](std::string_view body) {
    return read_pickle(std::string("\x80\x04\x8a") + std::string(body) + ".", "a").value;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(std::get<double>(integer("\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"sv)), 18446744073709551615.0);
  EXPECT_EQ(std::get<std::int64_t>(integer("\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv)), -1);
  EXPECT_EQ(std::get<std::int64_t>(integer("\x08\x00\x00\x00\x00\x00\x00\x00\x80"sv)),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(std::get<std::int64_t>(integer("\x01\xfe"sv)), -2);
  EXPECT_EQ(std::get<std::int64_t>(integer("\x00"sv)), 0);
  EXPECT_EQ(std::get<std::int64_t>(integer("\x03\x00\x00\x01"sv)), 65536);
}

}  // namespace
}  // namespace ridgeline
