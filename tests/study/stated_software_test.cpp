#include "sim/study/validation/stated_software.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

std::string of(std::string_view words) { return software_stated_in(words, "none stated"); }

TEST(StatedSoftware, a_version_stands_for_the_nearest_profile) {
  EXPECT_EQ(of("PyTorch 2.5.0a0+b465a5843b.nv24.09 CUDA V12.6.68, driver 550.107.02"), "pytorch-2.5");
  EXPECT_EQ(of("torch 2.6.0+cu126"), "pytorch-2.5");
  EXPECT_EQ(of("PyTorch 2.1.0 eager HF attn=eager"), "pytorch-2.1");
  EXPECT_EQ(of("PyTorch 2.0.0a0 NGC CUDA 12.1"), "pytorch-2.0");
  EXPECT_EQ(of("PyTorch 2.9.0 cu128"), "pytorch-2.11");
  EXPECT_EQ(of("PyTorch 2.11 with CUDA 13"), "pytorch-2.11");
  EXPECT_EQ(of("lambda-a100-80-sxm-bert-base-squad-fp16-b176-pt1.9.0a0"), "pytorch-1.10");
  EXPECT_EQ(of("PyTorch 1.13.0a0+d0d6b1f CUDA V11.8.89"), "pytorch-1.13");
}

TEST(StatedSoftware, of_two_profiles_as_near_it_is_the_older) {
  EXPECT_EQ(of("PyTorch 2.3.0a0+40ec155e58.nv24.03"), "pytorch-2.1");
  EXPECT_EQ(of("PyTorch 2.8.0 cu128"), "pytorch-2.5");
  EXPECT_EQ(of("PyTorch 1.10"), "pytorch-1.10");
  EXPECT_EQ(of("PyTorch 1.12.1 with CUDA 11.6"), "pytorch-1.12");
}

TEST(StatedSoftware, words_without_a_version_stay_what_they_were) {
  for (const char* words :
       {"", "PyTorch 2024", "2020 PyTorch/DeepSpeed", "pytorch:21.11-py3 NGC", "CUDA 10.1.243",
        "transformers ~4.20, driver 460.91.03, CUDA 11.2 (Jan 2022)", "PyTorch (version not stated)"})
    EXPECT_EQ(of(words), "none stated") << words;
}

}  // namespace
}  // namespace ridgeline
