// The tensors that a recording names are those that the operations of a call read and write; a call that lacks some of
// its arguments, or whose tensors are empty, is one that can be run or is not understood.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "sim/workload/op_operands.h"
#include "tests/trace/aten_examples.h"

namespace ridgeline::trace {
namespace {

constexpr std::int64_t kFirstInput = 100, kResult = 7;
using Places = std::set<std::size_t>;

/// The call of an example, each of its tensors in a storage of its own.
AtenCall call_of_named(const Example& example) {
  AtenCall call = call_of(example);
  std::int64_t storage = kFirstInput;
  for (Argument& argument : call.inputs) {
    if (auto* one = std::get_if<AtenTensor>(&argument)) one->storage = storage;
    if (auto* list = std::get_if<TensorList>(&argument))
      for (AtenTensor& tensor : *list) tensor.storage = storage;
    ++storage;
  }
  return call;
}

std::set<std::int64_t> storages_of(const std::vector<MappedOp>& ops, bool read, bool written) {
  std::set<std::int64_t> found;
  for (const MappedOp& op : ops) {
    for (const AtenTensor& tensor : op.inputs)
      if (read) found.insert(tensor.storage);
    for (const AtenTensor& tensor : op.outputs)
      if (written) found.insert(tensor.storage);
  }
  return found;
}

/// Arguments that are tensors and that no kernel of ours touches.
Places untouched(const AtenCall& call, const std::vector<MappedOp>& ops) {
  const std::set<std::int64_t> touched = storages_of(ops, true, true);
  Places places;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.tensor(i) != nullptr && !touched.contains(kFirstInput + static_cast<std::int64_t>(i))) places.insert(i);
  return places;
}

/// Tensors of which a kernel of ours reads nothing: gradients of one number, indices and factors that are a few bytes
/// beside the rest, tables of which some rows are touched, and what is asked for its shape alone.
const std::map<std::string, Places>& left_aside() {
  static const std::map<std::string, Places> places{{"_grouped_mm", {2}},
                                                    {"native_layer_norm_backward", {6}},
                                                    {"_fused_rms_norm_backward", {3}},
                                                    {"native_group_norm", {1, 2}},
                                                    {"native_group_norm_backward", {4}},
                                                    {"nll_loss_backward", {1}},
                                                    {"nll_loss2d_forward", {0}},
                                                    {"nll_loss2d_backward", {0, 1}},
                                                    {"index_add_", {2}},
                                                    {"index_add", {2}},
                                                    {"index_fill_", {2}},
                                                    {"index_select", {2}},
                                                    {"reflection_pad1d_backward", {1}},
                                                    {"reflection_pad2d_backward", {1}},
                                                    {"reflection_pad3d_backward", {1}},
                                                    {"replication_pad1d_backward", {1}},
                                                    {"replication_pad2d_backward", {1}},
                                                    {"replication_pad3d_backward", {1}},
                                                    {"binary_cross_entropy_backward", {0}},
                                                    {"glu_backward", {0}},
                                                    {"convolution_backward_overrideable", {2}},
                                                    {"_slow_conv2d_backward", {2}},
                                                    {"cudnn_convolution_transpose_backward", {0}},
                                                    {"_conv_depthwise2d_backward", {1}},
                                                    {"_C::rotary_embedding", {0, 4}},
                                                    {"_C::static_scaled_fp8_quant", {2}},
                                                    {"_C_cache_ops::reshape_and_cache", {2, 3, 4}},
                                                    {"_C_cache_ops::reshape_and_cache_flash", {2, 3, 4}}};
  return places;
}

TEST(AtenRecordedTensors, EveryTensorOfACallIsReadOrWritten) {
  for (const Example& example : examples()) {
    const AtenCall call = call_of_named(example);
    const auto ops = map_aten(call, {});
    ASSERT_TRUE(ops.has_value()) << example.name;
    const auto aside = left_aside().find(example.name);
    EXPECT_EQ(untouched(call, *ops), aside == left_aside().end() ? Places{} : aside->second) << example.name;
  }
}

/// PyTorch's names of what is written where it lies end with one line.
bool in_place(const std::string& name) { return name.ends_with('_') && !name.ends_with("__"); }

TEST(AtenRecordedTensors, WhatWorksInPlaceWritesItsFirstTensor) {
  int tried = 0;
  for (const Example& example : examples()) {
    const AtenCall call = call_of_named(example);
    if (!in_place(example.name) || call.tensor(0) == nullptr || left_aside().contains(example.name)) continue;
    const auto ops = map_aten(call, {});
    ASSERT_TRUE(ops.has_value()) << example.name;
    EXPECT_TRUE(storages_of(*ops, false, true).contains(kFirstInput)) << example.name;
    ++tried;
  }
  EXPECT_GT(tried, 30);
}

/// Whether a result that the recording names is written, of any of the shapes that the operations write.
bool writes_its_result(const AtenCall& call) {
  const auto alone = map_aten(call, {});
  for (const MappedOp& mapped : *alone)
    for (const AtenTensor& result : mapped.outputs) {
      AtenCall with = call;
      with.outputs = {result};
      with.outputs.front().storage = kResult;
      const auto ops = map_aten(with, {});
      if (ops && storages_of(*ops, false, true).contains(kResult)) return true;
    }
  return false;
}

TEST(AtenRecordedTensors, TheResultThatARecordingNamesIsWritten) {
  // Of several gradients some are not asked for, so that the recording's first need not be the operation's.
  const std::set<std::string> several{"native_group_norm_backward",
                                      "_fused_rms_norm_backward",
                                      "nll_loss2d_forward",
                                      "index_put",
                                      "scatter",
                                      "scatter_add",
                                      "scatter_reduce",
                                      "index_add",
                                      "nonzero",
                                      "_local_scalar_dense"};
  int tried = 0;
  for (const Example& example : examples()) {
    const bool of_others = example.name.find("::") != example.name.npos || example.name.starts_with("_foreach") ||
                           example.name.starts_with("_fused_a") || example.name.starts_with("_fused_s") ||
                           example.name.starts_with("_amp");
    const bool of_gradients = example.name.find("conv") != example.name.npos
                                  ? example.name.find("backward") != example.name.npos
                                  : example.name.find("attention_backward") != example.name.npos;
    if (in_place(example.name) || of_others || of_gradients || several.contains(example.name)) continue;
    EXPECT_TRUE(writes_its_result(call_of(example))) << example.name;
    ++tried;
  }
  EXPECT_GT(tried, 100);
}

/// The call with one argument less, cut off behind it, or with a tensor of another shape there.
std::vector<AtenCall> changed_at(const AtenCall& call, std::size_t place) {
  std::vector<AtenCall> changed(2, call);
  changed[0].inputs[place] = kLeftOut;
  changed[1].inputs.resize(place);
  const AtenTensor* tensor = call.tensor(place);
  if (tensor == nullptr) return changed;
  for (const Sizes& sizes : {Sizes{}, Sizes{0}, Sizes{3}, Sizes{0, 5}, Sizes{5, 0}, Sizes{3, 5}, Sizes{3, 0, 2, 5}}) {
    AtenTensor other = ridgeline::trace::tensor(sizes, tensor->type);
    changed.push_back(call);
    changed.back().inputs[place] = other;
  }
  return changed;
}

/// What no kernel could do; "": nothing.
std::string impossible(const std::vector<MappedOp>& ops) {
  for (const MappedOp& mapped : ops) {
    const std::string words = name_of(mapped.op) + " " + shape_of(mapped.op);
    const OperandCounts counts = operand_counts(mapped.op);
    const auto* copy = std::get_if<Copy>(&mapped.op);
    const bool tracked = !std::holds_alternative<MultiTensor>(mapped.op) && !(copy && leaves_device(copy->kind));
    if (tracked && (mapped.inputs.size() != static_cast<std::size_t>(counts.inputs) ||
                    mapped.outputs.size() != static_cast<std::size_t>(counts.outputs)))
      return words + " has other tensors than it should";
    if (std::regex_search(words, std::regex("-[0-9]"))) return words + " is less than nothing";
    std::int64_t bytes = 0;
    for (const auto* tensors : {&mapped.inputs, &mapped.outputs})
      for (const AtenTensor& tensor : *tensors) bytes += tensor.bytes();
    if (tracked && bytes == 0) return words + " is done with nothing";
  }
  return {};
}

TEST(AtenRecordedTensors, ACallThatLacksAnArgumentCanBeRunOrIsNotUnderstood) {
  int understood = 0, tried = 0;
  for (const Example& example : examples()) {
    const AtenCall call = call_of(example);
    for (std::size_t place = 0; place < call.inputs.size(); ++place)
      for (const AtenCall& changed : changed_at(call, place)) {
        const auto ops = map_aten(changed, {});
        ++tried;
        if (!ops) continue;
        ++understood;
        EXPECT_EQ(impossible(*ops), "") << example.name << " at " << place;
      }
  }
  EXPECT_GT(tried, 1000);
  EXPECT_GT(understood, tried / 4);
}

/// The call with every side of every tensor, and every list of numbers, of ones.
AtenCall of_ones(AtenCall call) {
  const auto shrink = [](AtenTensor& tensor) {
    std::ranges::fill(tensor.sizes, 1);
    tensor.strides.clear();
  };
  for (Argument& argument : call.inputs) {
    if (auto* one = std::get_if<AtenTensor>(&argument)) shrink(*one);
    if (auto* list = std::get_if<TensorList>(&argument)) std::ranges::for_each(*list, shrink);
    if (auto* numbers = std::get_if<Numbers>(&argument))
      for (double& number : *numbers) number = std::min(number, 1.0);
  }
  return call;
}

TEST(AtenRecordedTensors, TensorsOfOneElementAreWorkedOnToo) {
  std::set<std::string> without;
  for (const Example& example : examples()) {
    const auto ops = map_aten(of_ones(call_of(example)), {});
    if (!ops || ops->empty()) without.insert(example.name);
    else EXPECT_EQ(impossible(*ops), "") << example.name;
  }
  // Half of one element is none.
  EXPECT_EQ(without, (std::set<std::string>{"_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "_C::mul_and_silu",
                                            "_C::silu_and_mul", "glu", "glu_backward", "sgl_kernel::gelu_and_mul",
                                            "sgl_kernel::gelu_tanh_and_mul", "sgl_kernel::silu_and_mul"}));
}

}  // namespace
}  // namespace ridgeline::trace
