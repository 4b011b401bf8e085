// What a library has for a product besides the tiles of its menu, and what speaks against each in its choice: how often
// k is split, which products share k-steps, the habits.
//
// Of a chip only what a kernel needs of it decides whether it is a candidate: more of anything adds candidates and
// takes none away.
#pragma once

#include <array>
#include <span>

#include "sim/kernels/products/tile_menu.h"

namespace ridgeline {

/// Numbers of splits that are tried: of persistent kernels, for a second kernel, in place.
/// Few tiles of a long sum are split until their blocks fill the SMs: 132, 264 and 396 blocks of one tile on an H200.
inline constexpr std::array kPersistentSplits{2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,
                                              14, 16, 20, 24, 32, 44, 56, 66, 88, 110, 132};
inline constexpr std::array kSummedSplits{2,  3,  4,  5,  6,   7,   8,   9,   10,  11,  12,  13,
                                          14, 15, 16, 18, 20,  22,  24,  28,  32,  40,  48,  56,
                                          64, 72, 84, 96, 112, 132, 160, 192, 224, 264, 320, 396};
inline constexpr std::array kInPlaceSplits{2, 3, 4, 5, 6, 7, 8, 9};

/// One of a menu's kernels on the problem.
struct Candidate {
  const TileChoice* choice = nullptr;
  int splits = 1;
  bool in_place = false;  ///< splits or k-steps added up by the kernel itself
};

/// Numbers of splits in one of both ways, ascending.
std::span<const int> splits_of(const GemmWork& problem, bool in_place);

/// Whether a product is long enough to be split so. A second kernel adds up splits of long products only: of tiled
/// kernels k is at least twice the shorter side in nearly all profiled ones, of persistent ones eight times in all.
bool is_long_enough(const GemmWork& problem, bool in_place);

/// Blocks of splits for a second kernel fill at most three rounds of the SMs and are resident at once (nearly all
/// profiled ones).
bool may_fill(const GemmWork& problem, const GemmTile& tile, double tiles, int splits, bool in_place, double sms);

/// Whether blocks may share the k-steps of all tiles: 28 of them or more in all 230 profiled ones, no batch, no bias.
bool suits_stream_k(const GemmWork& problem, const GemmTile& tile);

/// What speaks against splits or shared k-steps in the library's choice, in shares of the time, besides the tile's own.
double dislike_of_splits(int splits, bool in_place, const GemmConstants& constants);
/// The tile's own.
double dislike_of_tile(const TileChoice& choice, const GemmConstants& constants);

}  // namespace ridgeline
