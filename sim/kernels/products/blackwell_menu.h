// The 16-bit kernels of matrix products on Blackwell (compute capability 10.x): tcgen05 with sums in tensor memory.
//
// No profile of the board is committed. Sides are those that the instruction takes: 128 rows an SM (64 at half its
// rate), 8 to 256 columns, and pairs of SMs with 256 rows together; names of cuBLAS's kernels (nvjet_sm100, "_2cta") in
// public issues have such tiles.
#pragma once

#include <initializer_list>

namespace ridgeline::blackwell {

/// The part of one SM: rows of the instruction and columns; `paired` with another SM of as many rows.
struct Tile {
  int rows, columns;
  bool paired;
};
inline constexpr std::initializer_list<Tile> kTcgen05Half{
    {128, 256, true}, {128, 224, true},  {128, 192, true},  {128, 160, true},  {128, 128, true},  {128, 96, true},
    {128, 64, true},  {128, 256, false}, {128, 224, false}, {128, 192, false}, {128, 160, false}, {128, 128, false},
    {128, 96, false}, {128, 64, false},  {128, 48, false},  {128, 32, false},  {128, 24, false},  {128, 16, false},
    {128, 8, false},  {64, 256, false},  {64, 192, false},  {64, 128, false},  {64, 96, false},   {64, 64, false},
    {64, 48, false},  {64, 32, false},   {64, 24, false},   {64, 16, false},   {64, 8, false}};

inline constexpr int kDepth = 64;  ///< of k a step
inline constexpr int kMostStages = 16, kSharedForStages = 215000, kThreads = 256;

}  // namespace ridgeline::blackwell
