// A name that was given where another kind is expected is told as what it is.
#include "sim/scenario/named_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

TEST(NamedKind, EveryShippedNameIsOfItsKindAlone) {
  for (const std::string& name : hardware_names()) EXPECT_EQ(key_of_name(name), "hardware") << name;
  for (const std::string& name : cluster_names()) EXPECT_EQ(key_of_name(name), "cluster") << name;
  for (const std::string& name : model_names()) EXPECT_EQ(key_of_name(name), "model") << name;
  for (const char* other : {"", "train", "scenarios/bert.yaml", "./gpt2", "nothing-of-that-name"})
    EXPECT_EQ(key_of_name(other), "") << other;
  EXPECT_EQ(key_of_name("A100"), "hardware") << "one of several";
  EXPECT_EQ(key_of_name("DGX H100"), "cluster");
}

TEST(NamedKind, TheMessageSaysWhereTheNameGoes) {
  EXPECT_EQ(other_kind("model", "h100"), "h100 is a GPU: hardware: h100, or --hardware h100");
  EXPECT_EQ(other_kind("hardware", "h100"), "");
  EXPECT_EQ(other_kind("hardware", "zzz"), "");
  EXPECT_THAT(no_file_but("gpt2"), HasSubstr("--model gpt2"));
  EXPECT_THAT(no_file_but("train.py"), HasSubstr("predict --record train.py"));
  EXPECT_EQ(no_file_but("no-such.yaml"), "");
}

}  // namespace
}  // namespace ridgeline
