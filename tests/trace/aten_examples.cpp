#include "tests/trace/aten_examples.h"

#include <fmt/format.h>

#include "sim/workload/pointwise_functions.h"

namespace ridgeline::trace {
namespace {

std::vector<Example> unary(std::string_view expected, std::initializer_list<const char*> names) {
  std::vector<Example> examples;
  for (const char* name : names) examples.push_back({name, {kX}, std::string(expected) + " 4x8 fp32"});
  return examples;
}
std::vector<Example> with_saved(std::string_view expected, std::initializer_list<const char*> names) {
  std::vector<Example> examples;
  for (const char* name : names) examples.push_back({name, {kX, kX}, std::string(expected) + " 4x8 fp32,fp32->fp32"});
  return examples;
}
std::vector<Example> of_lists(std::string_view expected, std::initializer_list<const char*> names) {
  std::vector<Example> examples;
  for (const char* name : names)
    examples.push_back({name, {TensorList{kX, tensor({10})}}, std::string(expected) + " 2 tensors, 42 elements fp32"});
  return examples;
}

std::vector<Example> products_and_attention() {
  return {
      // products
      {"mm", {half({4, 16}), half({16, 8})}, "mm 4x8x16 nn bf16"},
      {"addmm", {half({8}), half({4, 16}), tensor({16, 8}, DType::bf16, {1, 16})}, "addmm 4x8x16 nt bf16"},
      {"_addmm_activation", {half({8}), half({4, 16}), half({16, 8})}, "addmm 4x8x16 nn bf16"},
      {"bmm", {half({3, 4, 16}), half({3, 16, 8})}, "bmm 3x 4x8x16 nn bf16"},
      {"baddbmm", {half({3, 4, 8}), half({3, 4, 16}), half({3, 16, 8})}, "copy 12x8 bf16; bmm 3x 4x8x16 nn bf16"},
      {"_grouped_mm", {half({12, 16}), half({3, 16, 8}), tensor({3}, DType::int32)}, "_grouped_mm 3x 4x8x16 nn bf16"},
      // attention
      {"ridgeline::attention", {kHeads, kHeads, kHeads, kLeftOut, 0.0, 1.0}, "cudnn_attention 2x12x128x64 causal bf16"},
      {"ridgeline::attention_backward",
       {kHeads, kHeads, kHeads, kHeads, kHeads, tensor({2, 12, 128}), 0.0, 1.0},
       "cudnn_attention_backward 2x12x128x64 causal bf16"},
      {"_scaled_dot_product_flash_attention",
       {kHeads, kHeads, kHeads, 0.0, 1.0},
       "flash_attention 2x12x128x64 causal bf16"},
      {"_scaled_dot_product_flash_attention_backward",
       {kHeads, kHeads, kHeads, kHeads, kHeads, tensor({2, 12, 128}), kLeftOut, kLeftOut, 128.0, 128.0, 0.0, 1.0},
       "flash_attention_backward 2x12x128x64 causal bf16"},
      {"_scaled_dot_product_efficient_attention",
       {kHeads, kHeads, kHeads, kLeftOut, 1.0, 0.0, 0.0},
       "efficient_attention 2x12x128x64 bf16"},
      {"_scaled_dot_product_efficient_attention_backward",
       {kHeads, kHeads, kHeads, kHeads, kLeftOut, kHeads, tensor({2, 12, 128})},
       "efficient_attention_backward 2x12x128x64 bf16"},
      {"_scaled_dot_product_cudnn_attention",
       {kHeads, kHeads, kHeads, kLeftOut, 1.0, 0.0, 0.0},
       "cudnn_attention 2x12x128x64 bf16"},
      {"_scaled_dot_product_cudnn_attention_backward",
       {kHeads, kHeads, kHeads, kHeads, kHeads, tensor({2, 12, 128})},
       "cudnn_attention_backward 2x12x128x64 bf16"},
      {"_flash_attention_forward",
       {half({2, 128, 12, 64}), half({2, 128, 12, 64}), half({2, 128, 12, 64})},
       "flash_attention 2x12x128x64 bf16"},
      {"_flash_attention_backward",
       {kHeads, half({2, 128, 12, 64}), half({2, 128, 12, 64}), half({2, 128, 12, 64})},
       "flash_attention_backward 2x12x128x64 bf16"},
      {"_efficient_attention_forward",
       {half({2, 128, 12, 64}), half({2, 128, 12, 64}), half({2, 128, 12, 64})},
       "efficient_attention 2x12x128x64 bf16"},
      {"_efficient_attention_backward",
       {kHeads, half({2, 128, 12, 64}), half({2, 128, 12, 64}), half({2, 128, 12, 64})},
       "efficient_attention_backward 2x12x128x64 bf16"},
      {"_cudnn_attention_forward", {kHeads, kHeads, kHeads}, "cudnn_attention 2x12x128x64 bf16"},
      {"_cudnn_attention_backward", {kHeads, kHeads, kHeads, kHeads}, "cudnn_attention_backward 2x12x128x64 bf16"},
  };
}

std::vector<Example> rows_and_indices() {
  return {
      // rows
      {"_softmax", {kX, -1.0, 0.0}, "softmax 4x8 fp32"},
      {"_safe_softmax",
       {kX, -1.0},
       "softmax 4x8 fp32; eq 4x8 fp32->bool; sum 4x8 bool; fill 1x1 fp32; pointwise 4x8 bool,fp32->fp32"},
      {"_log_softmax", {half({4, 8}), 1.0, 1.0}, "log_softmax 4x8 bf16->fp32"},
      {"_softmax_backward_data", {kX, kX, -1.0, 5.0}, "softmax_backward 4x8 fp32->fp16"},
      {"_log_softmax_backward_data", {kX, kX, 1.0, std::string("fp32")}, "log_softmax_backward 4x8 fp32"},
      {"native_layer_norm", {kX, Numbers{8}, tensor({8}), tensor({8}), 1e-5}, "native_layer_norm 4x8 fp32"},
      {"native_layer_norm_backward",
       {kX, kX, Numbers{8}, tensor({4}), tensor({4}), tensor({8}), tensor({8})},
       "native_layer_norm_backward 4x8 fp32"},
      {"_fused_rms_norm", {kX, Numbers{8}, tensor({8})}, "rms_norm 4x8 fp32"},
      {"_fused_rms_norm_backward", {kX, kX, Numbers{8}, tensor({4}), tensor({8})}, "rms_norm_backward 4x8 fp32"},
      {"native_group_norm",
       {kImage, tensor({16}), tensor({16}), 2.0, 16.0, 1024.0, 4.0},
       "group_norm 8x4096 fp32; mul 32x1 fp32,fp32->fp32; add 32x1024 fp32,fp32->fp32"},
      {"native_group_norm_backward",
       {kImage, kImage, kLeftOut, kLeftOut, tensor({16}), 2.0, 16.0, 1024.0, 4.0},
       "group_norm 32x2048 fp32; mul 32x1 fp32,fp32->fp32; mul 8x1 fp32,fp32->fp32; "
       "add 32x1024 fp32,fp32,fp32->fp32; sum 2x16 fp32"},
      {"native_dropout", {kX, 0.1, 1.0}, "native_dropout 32 fp32"},
      {"_fused_dropout", {kX, 0.1}, "native_dropout 32 fp32"},
      {"embedding", {tensor({100, 8}), indices({2, 6})}, "embedding 12 of 100x8 fp32"},
      {"index_select", {tensor({100, 8}), 0.0, indices({12})}, "index_select 12x8 fp32"},
      {"embedding_dense_backward",
       {tensor({2, 6, 8}), indices({2, 6}), 100.0, -1.0},
       "embedding_dense_backward 12 of 100x8 fp32"},
      {"nll_loss_forward", {kX, indices({4})}, "nll_loss 4x8 fp32"},
      {"nll_loss_backward", {tensor({}), kX, indices({4})}, "nll_loss_backward 4x8 fp32"},
      {"nll_loss2d_forward", {tensor({2, 3, 8, 8}), indices({2, 8, 8})}, "pointwise 16x8 int64->fp32"},
      {"nll_loss2d_backward",
       {tensor({}), tensor({2, 3, 8, 8}), indices({2, 8, 8})},
       "fill 48x8 fp32; pointwise 16x8 int64->fp32"},
      {"mse_loss", {kX, kX, 1.0}, "mul 4x8 fp32,fp32->fp32; sum 1x32 fp32"},
      {"smooth_l1_loss", {kX, kX, 0.0}, "mul 4x8 fp32,fp32->fp32"},
      {"huber_loss", {kX, kX, 2.0}, "mul 4x8 fp32,fp32->fp32; sum 1x32 fp32"},
      {"mse_loss_backward", {tensor({}), kX, kX, 1.0}, "fill 4x8 fp32; mul 4x8 fp32,fp32,fp32->fp32"},
      {"smooth_l1_loss_backward", {tensor({}), kX, kX, 1.0}, "fill 4x8 fp32; mul 4x8 fp32,fp32,fp32->fp32"},
      {"huber_loss_backward", {tensor({}), kX, kX, 1.0}, "fill 4x8 fp32; mul 4x8 fp32,fp32,fp32->fp32"},
      // indices
      {"index", {tensor({100, 8}), TensorList{indices({12})}}, "embedding 12 of 100x8 fp32"},
      {"_index_put_impl_", {tensor({100, 8}), kLeftOut, tensor({12, 8}), 0.0, 1.0}, "index 12x8 fp32,fp32->fp32"},
      {"index_put_", {tensor({100, 8}), kLeftOut, tensor({12, 8}), 0.0}, "index 12x8 fp32,fp32->fp32"},
      {"index_put", {tensor({100, 8}), kLeftOut, tensor({12, 8}), 0.0}, "copy 100x8 fp32; index 12x8 fp32,fp32->fp32"},
      {"scatter_", {kX, 1.0, indices({4, 2}), tensor({4, 2})}, "scatter_add 4x2 int64,fp32->fp32"},
      {"scatter_add_", {kX, 1.0, indices({4, 2}), tensor({4, 2})}, "scatter_add 4x2 int64,fp32->fp32"},
      {"scatter_reduce_", {kX, 1.0, indices({4, 2}), tensor({4, 2})}, "scatter_add 4x2 int64,fp32->fp32"},
      {"scatter", {kX, 1.0, indices({4, 2}), tensor({4, 2})}, "copy 4x8 fp32; scatter_add 4x2 int64,fp32->fp32"},
      {"scatter_add", {kX, 1.0, indices({4, 2}), tensor({4, 2})}, "copy 4x8 fp32; scatter_add 4x2 int64,fp32->fp32"},
      {"scatter_reduce",
       {kX, 1.0, indices({4, 2}), tensor({4, 2})},
       "copy 4x8 fp32; copy 4x8 fp32; scatter_add 4x2 int64,fp32->fp32"},
      {"index_add_", {tensor({100, 8}), 0.0, indices({12}), tensor({12, 8})}, "index_add 12x8 fp32"},
      {"index_add", {tensor({100, 8}), 0.0, indices({12}), tensor({12, 8})}, "copy 100x8 fp32; index_add 12x8 fp32"},
      {"index_copy_", {tensor({100, 8}), 0.0, indices({12}), tensor({12, 8})}, "index_copy 12x8 fp32,fp32->fp32"},
      {"index_fill_", {tensor({100, 8}), 0.0, indices({12}), 1.0}, "roll 12x8 fp32"},
      {"masked_select", {kX, mask({4, 8})}, "nonzero 4x8 bool,int64->int64; index 16x1 fp32"},
      {"roll", {kX, Numbers{1, 1}, Numbers{0, 1}}, "roll 4x8 fp32; roll 4x8 fp32"},
      {"flip", {kX, Numbers{1}}, "flip 4x8 fp32"},
      {"sort", {kX, 1.0, 0.0}, "sort 4x8 fp32"},
      {"topk", {kX, 2.0, -1.0}, "topk 2 of 4x8 fp32"},
      {"histc", {kX, 16.0}, "fill 1x16 fp32; pointwise 4x8 fp32"},
      {"bincount",
       {kX},
       "sum 1x32 fp32; copy_to_host 1x1 fp32; sum 1x32 fp32; copy_to_host 1x1 fp32; fill 1x1 fp32; "
       "pointwise 4x8 fp32"},
      {"nonzero", {kX}, "nonzero 4x8 fp32,int64->int64"},
  };
}

std::vector<Example> images() {
  return {
      // images
      {"convolution",
       {kImage, tensor({64, 16, 3, 3}), kLeftOut, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 64, 3x3 fp32"},
      {"convolution_overrideable",
       {kImage, tensor({64, 16, 3, 3}), kLeftOut, Numbers{2, 2}},
       "conv2d 2x16x32x32 to 64, 3x3 fp32"},
      {"cudnn_convolution",
       {kImage, tensor({64, 16, 3, 3}), Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 64, 3x3 fp32"},
      {"cudnn_convolution_transpose",
       {kImage, tensor({16, 8, 2, 2}), Numbers{0, 0}, Numbers{0, 0}, Numbers{2, 2}},
       "conv_transpose2d 2x8x64x64 to 16, 2x2 fp32"},
      {"convolution_backward",
       {tensor({2, 64, 32, 32}), kImage, tensor({64, 16, 3, 3}), kLeftOut, Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1},
        0.0, Numbers{0, 0}, 1.0, Numbers{1, 1, 0}},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"convolution_backward_overrideable",
       {tensor({2, 64, 32, 32}), kImage, tensor({64, 16, 3, 3}), kLeftOut, Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1},
        0.0, Numbers{0, 0}, 1.0, Numbers{0, 1, 1}},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32; sum 64x2048 fp32"},
      {"cudnn_convolution_backward",
       {kImage, tensor({2, 64, 32, 32}), tensor({64, 16, 3, 3}), Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1}, 1.0, 0.0,
        0.0, 1.0, Numbers{1, 1}},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"cudnn_convolution_transpose_backward",
       {tensor({2, 16, 32, 32}), tensor({2, 8, 64, 64}), tensor({16, 8, 2, 2}), Numbers{0, 0}, Numbers{0, 0},
        Numbers{2, 2}, Numbers{1, 1}, 1.0, 0.0, 0.0, 1.0, Numbers{1, 0}},
       "conv_transpose2d_backward 2x8x64x64 to 16, 2x2 fp32"},
      {"cudnn_convolution_backward_weight",
       {Numbers{64, 16, 3, 3}, tensor({2, 64, 32, 32}), kImage, Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1}, 1.0},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"cudnn_convolution_backward_input",
       {Numbers{2, 16, 32, 32}, tensor({2, 64, 32, 32}), tensor({64, 16, 3, 3}), Numbers{1, 1}, Numbers{1, 1},
        Numbers{1, 1}, 1.0},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"thnn_conv2d_forward",
       {kImage, tensor({64, 16, 3, 3}), Numbers{3, 3}, kLeftOut, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 64, 3x3 fp32"},
  };
}

std::vector<Example> more_images() {
  return {
      {"_slow_conv2d_forward",
       {kImage, tensor({64, 16, 3, 3}), Numbers{3, 3}, kLeftOut, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 64, 3x3 fp32"},
      {"thnn_conv2d_backward",
       {tensor({2, 64, 32, 32}), kImage, tensor({64, 16, 3, 3}), Numbers{3, 3}, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"_slow_conv2d_backward",
       {tensor({2, 64, 32, 32}), kImage, tensor({64, 16, 3, 3}), Numbers{3, 3}, Numbers{1, 1}, Numbers{1, 1},
        Numbers{0, 1, 0}},
       "conv2d_backward 2x16x32x32 to 64, 3x3 fp32"},
      {"thnn_conv_depthwise2d_forward",
       {kImage, tensor({16, 1, 3, 3}), Numbers{3, 3}, kLeftOut, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 16 in 16 groups, 3x3 fp32"},
      {"_conv_depthwise2d",
       {kImage, tensor({16, 1, 3, 3}), Numbers{3, 3}, kLeftOut, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d 2x16x32x32 to 16 in 16 groups, 3x3 fp32"},
      {"thnn_conv_depthwise2d_backward",
       {kImage, kImage, tensor({16, 1, 3, 3}), Numbers{3, 3}, Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1}},
       "conv2d_backward 2x16x32x32 to 16 in 16 groups, 3x3 fp32"},
      {"_conv_depthwise2d_backward",
       {kImage, kImage, tensor({16, 1, 3, 3}), Numbers{3, 3}, Numbers{1, 1}, Numbers{1, 1}, Numbers{1, 1},
        Numbers{1, 0}},
       "conv2d_backward 2x16x32x32 to 16 in 16 groups, 3x3 fp32"},
      {"cudnn_batch_norm", {kImage}, "batch_norm 2x16x32x32 fp32"},
      {"native_batch_norm", {kImage}, "batch_norm 2x16x32x32 fp32"},
      {"_native_batch_norm_legit", {kImage}, "batch_norm 2x16x32x32 fp32"},
      {"_batch_norm_with_update", {kImage}, "batch_norm 2x16x32x32 fp32"},
      {"miopen_batch_norm", {kImage}, "batch_norm 2x16x32x32 fp32"},
      {"cudnn_batch_norm_backward", {kImage, kImage}, "batch_norm_backward 2x16x32x32 fp32"},
      {"native_batch_norm_backward", {kImage, kImage}, "batch_norm_backward 2x16x32x32 fp32"},
      {"batch_norm_backward", {kImage, kImage}, "batch_norm_backward 2x16x32x32 fp32"},
      {"max_pool2d_with_indices", {kImage, Numbers{2, 2}}, "max_pool2d 2x16x32x32 fp32"},
      {"max_pool2d_with_indices_backward", {tensor({2, 16, 16, 16}), kImage}, "max_pool2d_backward 2x16x32x32 fp32"},
      {"avg_pool2d", {kImage, Numbers{2, 2}}, "avg_pool2d 2x16x32x32 fp32"},
      {"_adaptive_avg_pool2d_backward", {tensor({2, 16, 4, 4}), kImage}, "avg_pool2d_backward 2x16x32x32 fp32"},
      {"avg_pool2d_backward", {tensor({2, 16, 16, 16}), kImage, Numbers{2, 2}}, "avg_pool2d_backward 2x16x32x32 fp32"},
      {"upsample_nearest2d", {kImage, Numbers{64, 64}}, "upsample_nearest2d 2x16x64x64 fp32"},
      {"upsample_nearest2d_backward",
       {tensor({2, 16, 64, 64}), Numbers{64, 64}, Numbers{2, 16, 32, 32}},
       "upsample_nearest2d_backward 2x16x64x64 fp32"},
  };
}

std::vector<Example> copies_and_the_rest() {
  return {// copies
          {"copy_", {half({4, 8}), kX}, "cast 4x8 fp32->bf16"},
          {"_to_copy", {kX, std::string("bf16")}, "cast 4x8 fp32->bf16", {half({4, 8})}},
          {"clone", {tensor({2, 3, 4, 8}, DType::fp32, {96, 8, 24, 1}), 0.0}, "copy 24x8 fp32"},
          {"select_backward", {kX, Numbers{4, 6, 8}, 1.0, 0.0}, "fill 24x8 fp32; copy 4x8 fp32"},
          {"slice_backward", {kX, Numbers{4, 16}, 1.0, 0.0, 8.0, 1.0}, "fill 4x16 fp32; copy 4x8 fp32"},
          {"constant_pad_nd", {kX, Numbers{1, 2}, 0.0}, "fill 4x11 fp32; copy 4x8 fp32"},
          {"repeat", {kX, Numbers{2, 1, 1}}, "copy 8x8 fp32"},
          {"_local_scalar_dense", {tensor({})}, "copy_to_host 1x1 fp32"},
          // reductions
          {"sum", {kX, Numbers{0}, 1.0}, "sum 4x8 fp32"},
          {"mean", {kX, Numbers{-1}}, "mean 4x8 fp32"},
          {"amax", {kX, Numbers{1}}, "sum 4x8 fp32"},
          {"amin", {kX, Numbers{1}}, "sum 4x8 fp32"},
          {"var", {kX, Numbers{1}}, "var 4x8 fp32"},
          {"var_mean", {kX, Numbers{1}}, "var 4x8 fp32"},
          {"std", {kX, Numbers{1}}, "var 4x8 fp32"},
          {"std_mean", {kX, Numbers{1}}, "var 4x8 fp32"},
          {"nansum", {kX, Numbers{1}}, "sum 4x8 fp32"},
          {"_adaptive_avg_pool2d", {kImage, Numbers{4, 4}}, "pointwise 128x4 fp32"},
          {"cumsum", {kX, 1.0}, "cumsum 4x8 fp32"},
          {"cumprod", {kX, 0.0}, "cumsum 4x8 fp32"},
          {"linalg_vector_norm", {kX, 2.0}, "linalg_vector_norm 1x32 fp32"},
          {"norm", {kX, 2.0}, "linalg_vector_norm 1x32 fp32"},
          // point-wise
          {"gelu", {kX, std::string("tanh")}, "gelu_tanh 4x8 fp32"},
          {"gelu_", {kX}, "gelu 4x8 fp32"},
          {"gelu_backward", {kX, kX, std::string("none")}, "gelu_backward 4x8 fp32,fp32->fp32"},
          {"masked_fill", {kX, mask({4, 8}), 0.0}, "masked_fill 4x8 fp32,bool->fp32"},
          {"masked_fill_", {kX, mask({4, 8}), 0.0}, "pointwise 4x8 fp32,bool->fp32"},
          {"native_dropout_backward", {kX, mask({4, 8}), 1.1}, "native_dropout_backward 4x8 fp32,bool->fp32"},
          {"_amp_update_scale_", {tensor({1}), kLeftOut, tensor({1})}, "pointwise 1x1 fp32,fp32->fp32"},
          {"arange", {16.0}, "arange 1x16 int64"},
          {"gather", {kX, 1.0, indices({4, 1})}, "gather 4x1 int64,fp32->fp32"},
          {"where", {mask({4, 8}), kX, kX}, "pointwise 4x8 bool,fp32,fp32->fp32"},
          // lists
          {"cat", {TensorList{kX, kX, kX}, 1.0}, "cat 4x8 fp32"},
          {"stack", {TensorList{tensor({}), tensor({})}}, "cat 1x1 fp32"}};
}

void add_lists(std::vector<Example>& all) {
  const auto add = [&](std::vector<Example> more) { all.insert(all.end(), more.begin(), more.end()); };
  add(of_lists("foreach_add_scalar", {"_foreach_add_", "_foreach_add", "_foreach_sub_", "_foreach_sub"}));
  add(of_lists("foreach_mul",
               {"_foreach_mul_", "_foreach_mul", "_foreach_neg_", "_foreach_zero_", "_foreach_clamp_min_"}));
  add(of_lists("foreach_div", {"_foreach_div_", "_foreach_div"}));
  add(of_lists("foreach_lerp", {"_foreach_lerp_"}));
  add(of_lists("foreach_addcmul", {"_foreach_addcmul_"}));
  add(of_lists("foreach_addcdiv", {"_foreach_addcdiv_"}));
  add(of_lists("foreach_sqrt", {"_foreach_sqrt", "_foreach_sqrt_", "_foreach_rsqrt", "_foreach_rsqrt_",
                                "_foreach_reciprocal", "_foreach_reciprocal_", "_foreach_neg", "_foreach_abs"}));
  add(of_lists("foreach_add", {"_foreach_maximum_"}));
  add(of_lists("foreach_copy", {"_foreach_copy_"}));
  add(of_lists("foreach_norm", {"_foreach_norm"}));
  add(of_lists("amp_foreach_unscale", {"_amp_foreach_non_finite_check_and_unscale_"}));
  add(of_lists("fused_adamw", {"_fused_adamw_"}));
  add(of_lists("fused_adam", {"_fused_adam_"}));
  add(of_lists("fused_sgd", {"_fused_sgd_"}));
}

/// Of two tensors, or of one and a number.
void add_of_two(std::vector<Example>& all) {
  const auto add = [&](std::vector<Example> more) { all.insert(all.end(), more.begin(), more.end()); };
  add(with_saved("add", {"add", "sub", "rsub", "maximum", "minimum"}));
  add(with_saved("add_", {"add_", "sub_"}));
  add(with_saved("pow", {"pow", "pow_"}));
  add(with_saved("mul", {"mul", "mul_", "div", "div_", "bitwise_and", "bitwise_or", "bitwise_xor", "hypot", "polar",
                         "fmin", "fmax", "copysign", "bitwise_and_", "bitwise_or_", "bitwise_xor_"}));
  add(with_saved("eq", {"logical_and_", "logical_or_", "logical_xor_"}));
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"})
    all.push_back({name, {kX, kX}, "eq 4x8 fp32,fp32->bool"});
}

/// Calls that differ in their names alone.
void add_of_one_kind(std::vector<Example>& all) {
  const auto add = [&](std::vector<Example> more) { all.insert(all.end(), more.begin(), more.end()); };
  for (const char* name : {"all", "any", "max", "min", "prod"}) all.push_back({name, {kX}, "sum 1x32 fp32"});
  for (const char* name : {"argmax", "argmin"}) all.push_back({name, {kX}, "argmax 1x32 fp32"});
  for (const char* name : {"cummax", "cummin", "_cummax_helper", "logcumsumexp", "_logcumsumexp"})
    all.push_back({name, {kX, 1.0}, "cumsum 4x8 fp32"});
  add(unary("tril", {"tril", "triu", "tril_", "triu_"}));
  add(unary("tanh", {"log1p", "log1p_", "expm1", "expm1_", "sin", "sin_", "cos", "cos_", "tan", "tan_", "asin", "acos",
                     "atan", "atan_", "sinh", "cosh", "erfc", "sinc"}));
  add(unary("gelu", {"elu", "elu_", "celu", "celu_"}));
  add(unary("special", {"lgamma", "lgamma_", "digamma", "digamma_", "erfinv", "erfinv_", "igamma", "polygamma"}));
  add(unary("random", {"bernoulli", "bernoulli_", "uniform_", "normal_", "random_", "exponential_", "log_normal_",
                       "cauchy_", "geometric_", "rand_like", "randn_like", "randint_like"}));
  add(unary("eq", {"logical_not", "logical_not_", "isfinite", "isnan", "isinf", "isneginf", "isposinf", "signbit"}));
  add(unary("pointwise", {"log_", "log2_", "log10_", "exp2_", "abs_", "erf_", "floor_", "ceil_", "round_", "sign_",
                          "square_", "trunc_", "frac_", "nan_to_num_", "sgn"}));
  add(with_saved("atan2", {"atan2", "atan2_", "logaddexp"}));
  for (const char* name : {"hypot_", "copysign_", "xlogy"}) all.push_back({name, {kX, kX}, "mul 4x8 fp32,fp32->fp32"});
  add(with_saved("remainder", {"remainder", "fmod", "floor_divide", "remainder_", "fmod_", "floor_divide_"}));
  add(unary("silu", {"silu", "silu_"}));
  add(unary("relu", {"relu", "relu_", "clamp_min", "clamp_min_"}));
  add(unary("tanh", {"tanh", "tanh_"}));
  add(unary("sqrt", {"sqrt", "sqrt_", "rsqrt", "rsqrt_"}));
  add(unary("reciprocal", {"reciprocal", "reciprocal_"}));
  add(unary("scale", {"neg", "neg_"}));
  add(unary("clamp", {"clamp", "clamp_", "clamp_max", "hardtanh", "hardtanh_"}));
  add(unary("pointwise", {
                             "sigmoid",     "exp",        "log",       "log2",        "abs",
                             "erf",         "floor",      "ceil",      "round",       "sign",
                             "square",      "leaky_relu", "hardswish", "hardsigmoid", "log_sigmoid_forward",
                             "bitwise_not", "nan_to_num", "sigmoid_",  "exp_",        "leaky_relu_",
                             "hardswish_",  "frac",       "trunc",     "exp2",        "log10",
                             "logit",
                         }));
  for (const char* name :
       {"fill_", "zero_", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill"})
    all.push_back({name, {kX}, "fill 4x8 fp32"});
  // kernels of serving libraries
  for (const char* name : {"_C::rms_norm", "sgl_kernel::rmsnorm"})
    all.push_back({name, {kX, kX, tensor({8}), 1e-5}, "triton_per_fused_rms_norm 4x8 fp32, 2 in, 1 out"});
  for (const char* name : {"_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm"})
    all.push_back({name, {kX, kX, tensor({8}), 1e-5}, "triton_per_fused_add_rms_norm 4x8 fp32, 3 in, 2 out"});
  for (const char* name : {"_C::silu_and_mul", "_C::mul_and_silu", "_C::gelu_and_mul", "_C::gelu_tanh_and_mul",
                           "sgl_kernel::silu_and_mul", "sgl_kernel::gelu_and_mul", "sgl_kernel::gelu_tanh_and_mul"})
    all.push_back({name, {kX, tensor({4, 16})}, "triton_per_fused_activation_mul 4x8 fp32, 1 in, 1 out"});
  all.push_back({"_C::rotary_embedding",
                 {indices({4}), half({4, 64}), half({4, 16}), 16.0, half({128, 16}), 1.0},
                 "triton_per_fused_rotary_embedding 4x80 bf16, 3 in, 2 out"});
  all.push_back({"_C::static_scaled_fp8_quant",
                 {tensor({4, 8}, DType::uint8), half({4, 8}), tensor({1})},
                 "triton_per_fused_fp8_quant 4x8 bf16, 1 in, 1 out"});
  for (const char* name : {"_C_cache_ops::reshape_and_cache", "_C_cache_ops::reshape_and_cache_flash"})
    all.push_back({name,
                   {half({4, 2, 16}), half({4, 2, 16}), half({100, 16, 2, 16}), half({100, 16, 2, 16}), indices({4})},
                   "triton_per_fused_reshape_and_cache 4x64 bf16, 2 in, 2 out"});
  for (const char* name : {"rand", "randn", "randint"}) all.push_back({name, {Numbers{4, 8}}, "random 4x8 fp32", {kX}});
  for (const char* name : {"zeros", "ones", "full", "scalar_tensor"})
    all.push_back({name, {Numbers{4, 8}}, "fill 4x8 fp32", {kX}});
  add(with_saved("silu_backward", {"silu_backward"}));
  add(with_saved("relu_backward", {"threshold_backward"}));
  add(with_saved("tanh_backward", {"tanh_backward"}));
  add(with_saved("pointwise", {"sigmoid_backward", "leaky_relu_backward", "elu_backward", "hardswish_backward",
                               "hardsigmoid_backward", "hardtanh_backward", "log_sigmoid_backward", "lerp", "lerp_",
                               "addcmul", "addcmul_", "addcdiv", "addcdiv_"}));
  add_of_two(all);
  // Functions that no code names, by their rows.
  for (const PointwiseRow& row : pointwise_rows().subspan(static_cast<std::size_t>(PointwiseFunction::other) + 1))
    for (std::string names(row.call.names); !names.empty();
         names.erase(0, std::min(names.find(' '), names.size() - 1) + 1))
      if (row.tensors == 1)
        all.push_back({names.substr(0, names.find(' ')), {kX}, fmt::format("{} 4x8 fp32", row.name)});
      else all.push_back({names.substr(0, names.find(' ')), {kX, kX}, fmt::format("{} 4x8 fp32,fp32->fp32", row.name)});
}

}  // namespace

std::vector<Example> examples() {
  std::vector<Example> all = products_and_attention();
  for (const auto& more : {rows_and_indices(), images(), more_images(), copies_and_the_rest(), resampling_examples(),
                           composite_examples()})
    all.insert(all.end(), more.begin(), more.end());
  add_of_one_kind(all);
  add_lists(all);
  return all;
}

}  // namespace ridgeline::trace
