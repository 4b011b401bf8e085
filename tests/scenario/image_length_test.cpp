// A network that reads images has sequences of one length, which nobody needs to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

Scenario trained(const std::string& model, const std::string& length) {
  return load_scenario(
      {.file = {},
       .text = "hardware: nvidia-h200-sxm-141gb\nmodel: " + model + "\ntraining: {micro_batch: 2" + length + "}\n",
       .text_name = "images.yaml",
       .overrides = {}});
}

TEST(ImageLength, IsThatOfThePatchesAndTheClassTokenWhereNothingIsSaid) {
  EXPECT_EQ(trained("vit-large", "").training.sequence_length, 14 * 14 + 1);
  EXPECT_EQ(trained("vit-large", ", sequence_length: 197").training.sequence_length, 197);
}

TEST(ImageLength, AnotherOneIsAMistake) {
  for (const char* length : {"100", "512"}) {
    try {
      static_cast<void>(trained("vit-large", std::string(", sequence_length: ") + length));
      ADD_FAILURE() << length;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("an image is 197 of vit-large"));
    }
  }
}

TEST(ImageLength, ANetworkThatReadsTextStillAsks) { EXPECT_THROW(static_cast<void>(trained("gpt2", "")), UserError); }

}  // namespace
}  // namespace ridgeline
