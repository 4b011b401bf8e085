// Examples of calls that make pixels of others, and of calls that run several kernels.
#include <fmt/format.h>

#include "tests/trace/aten_examples.h"

namespace ridgeline::trace {

/// Pixels made of others: by name of the call, sides, and what it is taken for.
std::vector<Example> resampling_examples() {
  const AtenTensor line = tensor({2, 16, 32}), longer = tensor({2, 16, 64}), cube = tensor({2, 16, 4, 4, 4}),
                   larger = tensor({2, 16, 64, 64}), padded = tensor({2, 16, 34, 34}), grid = tensor({2, 8, 8, 2});
  const Numbers sides{64, 64}, image{2, 16, 32, 32}, one{1, 1}, two{1, 1, 1, 1}, three{1, 1, 1, 1, 1, 1};
  std::vector<Example> all{
      {"_upsample_nearest_exact2d", {kImage, sides}, "upsample_nearest2d 2x16x64x64 fp32"},
      {"_upsample_nearest_exact2d_backward", {larger, sides, image}, "upsample_nearest2d_backward 2x16x64x64 fp32"},
      {"upsample_nearest1d", {line, Numbers{64}}, "upsample_nearest 2x16 of 32 to 64 fp32"},
      {"upsample_nearest1d_backward",
       {longer, Numbers{64}, Numbers{2, 16, 32}},
       "upsample_nearest_backward 2x16 of 32 to 64 fp32"},
      {"upsample_nearest3d", {cube, Numbers{8, 8, 8}}, "upsample_nearest 2x16 of 64 to 512 fp32"},
      {"upsample_nearest3d_backward",
       {tensor({2, 16, 8, 8, 8}), Numbers{8, 8, 8}, Numbers{2, 16, 4, 4, 4}},
       "upsample_nearest_backward 2x16 of 64 to 512 fp32"},
      {"upsample_linear1d", {line, Numbers{64}}, "upsample_linear 2x16 of 32 to 64 fp32"},
      {"upsample_linear1d_backward",
       {longer, Numbers{64}, Numbers{2, 16, 32}},
       "upsample_linear_backward 2x16 of 32 to 64 fp32"},
      {"grid_sampler_2d", {kImage, grid, 0.0, 0.0, 0.0}, "grid_sampler_2d 2x16 of 1024 to 64 fp32"},
      {"cudnn_grid_sampler", {kImage, grid}, "grid_sampler_2d 2x16 of 1024 to 64 fp32"},
      {"grid_sampler_2d_backward",
       {tensor({2, 16, 8, 8}), kImage, grid, 0.0},
       "grid_sampler_2d_backward 2x16 of 1024 to 64 fp32"},
      {"im2col", {kImage, Numbers{2, 2}}, "im2col 2x16 of 1024 to 256 fp32", {tensor({2, 64, 256})}},
      {"col2im", {tensor({2, 64, 256}), Numbers{32, 32}, Numbers{2, 2}}, "col2im 2x16 of 1024 to 256 fp32"},
      {"pixel_shuffle", {kImage, 2.0}, "copy 512x64 fp32"},
      {"pixel_unshuffle", {kImage, 2.0}, "copy 2048x16 fp32"},
      {"searchsorted", {tensor({100}), kX}, "searchsorted 4x8 fp32,fp32->int64"},
      {"bucketize", {kX, tensor({100})}, "searchsorted 4x8 fp32,fp32->int64"},
      {"linspace", {0.0, 1.0, 16.0}, "arange 1x16 fp32"},
      {"eye", {4.0, 8.0}, "fill 4x8 fp32; fill 1x4 fp32", {kX}},
  };
  for (const char* kind : {"bilinear", "bicubic"}) {
    const std::string name = fmt::format("upsample_{}2d", kind);
    all.push_back({name, {kImage, sides}, name + " 2x16 of 1024 to 4096 fp32"});
    all.push_back({name + "_backward", {larger, sides, image}, name + "_backward 2x16 of 1024 to 4096 fp32"});
  }
  for (const char* kind : {"reflection", "replication"}) {
    const std::string name = fmt::format("{}_pad", kind);
    all.push_back({name + "1d", {line, one}, name + " 2x16 of 32 to 34 fp32"});
    all.push_back({name + "2d", {kImage, two}, name + " 2x16 of 1024 to 1156 fp32"});
    all.push_back({name + "3d", {cube, three}, name + " 2x16 of 64 to 216 fp32"});
    all.push_back({name + "1d_backward", {tensor({2, 16, 34}), line, one}, name + "_backward 2x16 of 32 to 34 fp32"});
    all.push_back({name + "2d_backward", {padded, kImage, two}, name + "_backward 2x16 of 1024 to 1156 fp32"});
    all.push_back(
        {name + "3d_backward", {tensor({2, 16, 6, 6, 6}), cube, three}, name + "_backward 2x16 of 64 to 216 fp32"});
  }
  return all;
}

std::vector<Example> composite_examples() {
  return {
      {"_euclidean_dist",
       {kX, tensor({5, 8})},
       "pow 4x8 fp32; sum 4x8 fp32; fill 4x1 fp32; pow 5x8 fp32; sum 5x8 fp32; fill 5x1 fp32; scale 4x8 fp32; "
       "cat 4x10 fp32; cat 5x10 fp32; mm 4x5x10 nt fp32; clamp 4x5 fp32; sqrt 4x5 fp32"},
      {"binary_cross_entropy", {kX, kX, kLeftOut, 1.0}, "gelu 4x8 fp32,fp32->fp32; mean 1x32 fp32"},
      {"binary_cross_entropy_backward", {tensor({}), kX, kX}, "mul 4x8 fp32,fp32->fp32; div 4x8 fp32"},
      {"binary_cross_entropy_with_logits",
       {kX, kX},
       "gelu 4x8 fp32; fill 1x1 fp32; scale 4x8 fp32; mul 4x8 fp32,fp32->fp32; add 4x8 fp32,fp32->fp32; "
       "mean 1x32 fp32"},
      {"diag_embed", {tensor({8})}, "fill 8x8 fp32; copy 8x1 fp32", {tensor({8, 8})}},
      {"glu", {kX, -1.0}, "silu_backward 1x16 fp32,fp32->fp32"},
      {"glu_backward", {tensor({4, 4}), kX, -1.0}, "silu_backward 1x32 fp32,fp32->fp32"},
      {"logsumexp",
       {kX, Numbers{1}},
       "sum 4x8 fp32; pointwise 4x1 fp32; eq 4x1 fp32->bool; pointwise 4x1 fp32,bool->fp32; add 4x8 fp32,fp32->fp32; "
       "pointwise 4x8 fp32; sum 4x8 fp32; pointwise 4x1 fp32; add 4x1 fp32,fp32->fp32"},
      {"count_nonzero", {kX, Numbers{1}}, "eq 4x8 fp32->bool; cast 4x8 bool->int64; sum 4x8 int64"},
  };
}

}  // namespace ridgeline::trace
