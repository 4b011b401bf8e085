// GPUs by the names that people, drivers and clouds give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "sim/config/data_folder.h"
#include "sim/config/shipped_names.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string told(const std::string& name) {
  try {
    return "is " + load_gpu(name).name;
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(HardwareNames, AreTakenAsPeopleSpellThem) {
  const std::map<std::string, std::vector<std::string>> spellings{
      {"nvidia-rtx-3090",
       {"rtx3090", "RTX 3090", "3090", "RTX_3090", "GeForce RTX 3090", "NVIDIA GeForce RTX 3090", "rtx-3090-24GB",
        "geforce-rtx-3090"}},
      {"nvidia-rtx-4090", {"rtx4090", "4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "RTX 4090 24 GB"}},
      {"nvidia-rtx-a6000", {"A6000", "rtx a6000", "RTX-A6000", "Quadro RTX A6000", "NVIDIA RTX A6000"}},
      {"nvidia-a100-sxm4-80gb",
       {"A100-80GB", "a100 80gb", "A100 80G", "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "A100 SXM 80GB",
        "a100_80gb_sxm4"}},
      {"nvidia-a100-sxm4-40gb", {"A100-40GB", "NVIDIA A100-SXM4-40GB", "A100 40GB SXM4"}},
      {"nvidia-a100-pcie-80gb", {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb", "A100 PCIe 80GB"}},
      {"nvidia-a100-pcie-40gb", {"NVIDIA A100-PCIE-40GB"}},
      {"nvidia-h100-sxm5-80gb", {"H100", "h100-80gb", "H100 SXM", "NVIDIA H100 80GB HBM3", "H100 SXM5"}},
      {"nvidia-h100-pcie-80gb", {"H100 PCIe", "NVIDIA H100 PCIe"}},
      {"nvidia-h200-sxm-141gb", {"H200", "nvidia-h200", "NVIDIA H200", "h200 sxm", "H200 141GB"}},
      {"nvidia-gh200-96gb", {"GH200", "NVIDIA GH200 480GB"}},
      {"nvidia-b200", {"B200", "NVIDIA B200"}},
      {"nvidia-l4", {"L4", "NVIDIA L4"}},
      {"nvidia-l40s", {"L40S", "NVIDIA L40S", "l40s 48gb"}},
      {"nvidia-a10g", {"A10G", "NVIDIA A10G"}},
      {"nvidia-a40", {"A40", "NVIDIA A40"}},
      {"nvidia-t4", {"T4", "Tesla T4", "NVIDIA T4", "tesla-t4"}},
      {"nvidia-v100-sxm2-16gb", {"V100-16GB", "Tesla V100-SXM2-16GB", "v100 16gb"}},
      {"nvidia-v100-sxm2-32gb", {"V100 32GB", "Tesla V100-SXM2-32GB"}},
      {"nvidia-v100-pcie-32gb", {"Tesla V100-PCIE-32GB"}}};
  for (const auto& [name, given] : spellings)
    for (const std::string& one : given) EXPECT_EQ(told(one), "is " + name) << one;
}

TEST(HardwareNames, ThatFitSeveralListThem) {
  EXPECT_THAT(told("a100"), HasSubstr("did you mean nvidia-a100-pcie-40gb, nvidia-a100-pcie-80gb, "
                                      "nvidia-a100-sxm4-40gb, nvidia-a100-sxm4-80gb?"));
  EXPECT_THAT(told("Tesla V100"), AllOf(HasSubstr("nvidia-v100-sxm2-16gb"), HasSubstr("nvidia-v100-pcie-32gb")));
}

// Its memory and its form are what a name may leave out; a letter or a digit more is another chip.
TEST(HardwareNames, AreNeverAnsweredByAnotherGpu) {
  for (const std::string name :
       {"RTX 3090 Ti", "RTX 5090", "RTX 2080 Ti", "GTX 1080", "L40",          "A10",  "A16",
        "H800",        "A800",     "H20",         "h300",     "RTX 6000 Ada", "T400", "P100",
        "MI300X",      "A100X",    "V100S",       "nvidia",   "GeForce",      "gpu",  "no-such-gpu"})
    EXPECT_THAT(told(name), AllOf(Not(HasSubstr("did you mean")), HasSubstr("no GPU of this name is described")))
        << name;
}

TEST(HardwareNames, NoTwoFilesClaimTheSameSpelling) {
  for (const char* folder : {"", "clusters", "hosts", "software"}) {
    std::map<std::string, std::string> claimed;
    for (const config::ShippedName& one : config::shipped_names(config::data_folder("hw") / folder))
      for (const std::string& spelling : one.spellings) {
        const auto [other, is_new] = claimed.emplace(spelling_key(spelling, hardware_spelling()), one.name);
        EXPECT_TRUE(is_new || other->second != one.name) << one.name << " says '" << spelling << "' twice";
        EXPECT_TRUE(is_new || other->second == one.name)
            << "'" << spelling << "' is claimed by " << other->second << " and " << one.name;
      }
    EXPECT_GT(claimed.size(), 5u) << folder;
  }
}

TEST(HardwareNames, OfClustersAndSoftwareMayBeSpelledToo) {
  const auto file = [](const char* what, const char* folder, const char* name) {
    return std::filesystem::path(described_file(what, folder, name)).stem().string();
  };
  for (const char* name : {"HGX H100", "dgx-h100", "DGX H100", "8xH100", "8x H100", "h100 x8"})
    EXPECT_EQ(file("cluster", "clusters", name), "hgx-h100") << name;
  EXPECT_EQ(file("cluster", "clusters", "p5.48xlarge"), "p5");
  for (const char* name : {"PyTorch 2.11", "2.11", "torch-2.11", "pytorch2.11"})
    EXPECT_EQ(file("software", "software", name), "pytorch-2.11") << name;
  for (const char* name : {"dgx-h300", "16xH100", "rtx3090-x3"})
    EXPECT_THAT([&] { (void)file("cluster", "clusters", name); },
                ::testing::ThrowsMessage<UserError>(AllOf(HasSubstr("there are "), Not(HasSubstr("did you mean")))))
        << name;
}

}  // namespace
}  // namespace ridgeline
