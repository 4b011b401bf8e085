#include "sim/workload/op.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/workload/host_class.h"

namespace ridgeline {
namespace {

TEST(Ops, Equal_descriptions_have_equal_hashes_and_every_field_matters) {
  const Matmul product{DType::bf16, 1, 2048, 1024, 4096, Layout::nt, true};
  EXPECT_EQ(hash_of(product), hash_of(Matmul{product}));
  std::set<std::size_t> hashes{hash_of(product)};
  for (int field = 0; field < 7; ++field) {
    Matmul other = product;
    if (field == 0) other.type = DType::fp16;
    if (field == 1) other.batch = 2;
    if (field == 2) other.m = 1024;
    if (field == 3) other.n = 2048;
    if (field == 4) other.k = 1;
    if (field == 5) other.layout = Layout::tn;
    if (field == 6) other.bias = false;
    EXPECT_TRUE(hashes.insert(hash_of(other)).second) << field;
  }
}

TEST(Ops, Lists_of_tensors_are_compared_by_their_sizes) {
  const auto list = [](std::vector<std::int64_t> sizes) {
    return MultiTensor{MultiTensorFunction::lerp, DType::fp32,
                       std::make_shared<const std::vector<std::int64_t>>(std::move(sizes)), false};
  };
  EXPECT_EQ(hash_of(list({1, 2, 3})), hash_of(list({1, 2, 3})));
  EXPECT_EQ(Op{list({1, 2, 3})}, Op{list({1, 2, 3})});
  EXPECT_NE(hash_of(list({1, 2, 3})), hash_of(list({3, 2, 1})));
}

TEST(Ops, Are_named_as_PyTorch_names_them) {
  EXPECT_EQ(name_of(Op{Matmul{DType::bf16, 1, 8, 8, 8, Layout::nt, true}}), "addmm");
  EXPECT_EQ(name_of(Op{Matmul{DType::bf16, 4, 8, 8, 8}}), "bmm");
  EXPECT_EQ(name_of(Op{Norm{false, true, true, DType::fp32, 8, 8}}), "native_layer_norm_backward");
  EXPECT_EQ(name_of(Op{MultiTensor{MultiTensorFunction::lerp, DType::fp32, nullptr, false}}), "foreach_lerp");
  EXPECT_EQ(shape_of(Op{Matmul{DType::bf16, 1, 2048, 1024, 4096, Layout::nt}}), "2048x1024x4096 nt bf16");
}

TEST(HostClasses, Have_one_name_each) {
  const auto names = host_class_names();
  EXPECT_EQ(names.size(), static_cast<std::size_t>(HostClass::other) + 1);
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(name_of(HostClass::addmm_backward), "addmm_backward");
}

}  // namespace
}  // namespace ridgeline
