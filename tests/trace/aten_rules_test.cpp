// Every rule from a dispatcher call to our operations: what it gives of its example, and how large the tensors are that
// each of these operations reads and writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/workload/op_operands.h"
#include "tests/support/operand_sizes.h"
#include "tests/support/rules_shown_elsewhere.h"
#include "tests/trace/aten_examples.h"

namespace ridgeline::trace {
namespace {

TEST(AtenMap, EveryRuleGivesTheOperationOfItsExample) {
  for (const Example& example : examples()) EXPECT_EQ(described(example), example.expected) << example.name;
}

TEST(AtenMap, NoRuleIsWithoutAnExample) {
  std::set<std::string> shown = shown_elsewhere();
  for (const Example& example : examples()) shown.insert(full_name(example));
  for (const std::string_view name : mapped_names()) EXPECT_TRUE(shown.contains(std::string(name))) << name;
}

/// In place the same functor runs (aten/src/ATen/native/cuda): but a mask is filled in without a copy of the tensor.
TEST(AtenMap, CallsInPlaceRunTheKernelOfTheirTwins) {
  int twins = 0;
  for (const std::string_view name : mapped_names()) {
    if (!name.ends_with('_') || name == "aten::masked_fill_") continue;
    AtenCall in_place, fresh;
    in_place.name = name;
    fresh.name = name.substr(0, name.size() - 1);
    in_place.inputs = fresh.inputs = {kX, kX};
    const auto one = map_aten(in_place, {}), other = map_aten(fresh, {});
    if (!one || !other || one->size() != 1 || other->size() != 1) continue;
    const auto *a = std::get_if<Pointwise>(&one->front().op), *b = std::get_if<Pointwise>(&other->front().op);
    if (a == nullptr || b == nullptr) continue;
    ++twins;
    const bool adds = a->function == PointwiseFunction::add_in_place && b->function == PointwiseFunction::add;
    EXPECT_TRUE(adds || a->function == b->function) << name << ": " << name_of(*a) << " and " << name_of(*b);
  }
  EXPECT_GT(twins, 60);
}

/// Lists are not tracked, and of a transfer one end is on the host.
bool names_its_tensors(const Op& op) {
  if (const auto* copy = std::get_if<Copy>(&op)) return !leaves_device(copy->kind);
  return !std::holds_alternative<MultiTensor>(op);
}

/// What is wrong with the tensors of an operation; "": nothing.
std::string mistake_in_tensors(const MappedOp& mapped) {
  const OperandCounts counts = operand_counts(mapped.op);
  if (mapped.inputs.size() != static_cast<std::size_t>(counts.inputs) ||
      mapped.outputs.size() != static_cast<std::size_t>(counts.outputs))
    return fmt::format("reads {} tensors and writes {}, and has {} and {}", counts.inputs, counts.outputs,
                       mapped.inputs.size(), mapped.outputs.size());
  const testing_support::OperandSizes sizes = testing_support::whole_operands(mapped.op);
  std::size_t place = 0;
  for (const auto* tensors : {&mapped.inputs, &mapped.outputs})
    for (const AtenTensor& tensor : *tensors) {
      if (place < sizes.bytes.size() && sizes.bytes[place] && *sizes.bytes[place] != tensor.bytes())
        return fmt::format("operand {} has {} bytes, and the operation {}", place, tensor.bytes(), *sizes.bytes[place]);
      ++place;
    }
  return {};
}

/// Whatever a convolution computes, its three tensors are two images and the filters; of groups the op has one.
TEST(AtenMap, AConvolutionHasTwoImagesAndFilters) {
  int convolutions = 0;
  for (const Example& example : examples()) {
    const auto operations = map_aten(call_of(example), {});
    ASSERT_TRUE(operations.has_value()) << example.name;
    for (const MappedOp& mapped : *operations) {
      const auto* op = std::get_if<Convolution>(&mapped.op);
      if (op == nullptr) continue;
      ++convolutions;
      std::multiset<std::int64_t> bytes;
      for (const auto* tensors : {&mapped.inputs, &mapped.outputs})
        for (const AtenTensor& tensor : *tensors) bytes.insert(tensor.bytes());
      const std::int64_t element = bytes_of(op->type),
                         large_image = op->batch * op->in_channels * op->pixels() * element,
                         small_image = op->batch * op->out_channels * op->out_pixels() * element,
                         filters = op->in_channels / op->groups * op->out_channels * op->taps() * element;
      std::multiset<std::int64_t> expected{large_image, small_image, filters};  // two of them give the third
      if (op->backward && op->gradients == ConvolutionGradients::both)
        expected.insert({op->transposed ? small_image : large_image, filters});
      EXPECT_EQ(bytes, expected) << example.name << ' ' << shape_of(mapped.op);
    }
  }
  EXPECT_GT(convolutions, 15);
}

TEST(AtenMap, TensorsAreAsManyAndAsLargeAsTheOperationSays) {
  for (const Example& example : examples()) {
    const auto operations = map_aten(call_of(example), {});
    ASSERT_TRUE(operations.has_value()) << example.name;
    for (const MappedOp& mapped : *operations) {
      if (!names_its_tensors(mapped.op)) continue;
      EXPECT_EQ(mistake_in_tensors(mapped), "")
          << example.name << ": " << name_of(mapped.op) << ' ' << shape_of(mapped.op);
    }
  }
}

}  // namespace
}  // namespace ridgeline::trace
