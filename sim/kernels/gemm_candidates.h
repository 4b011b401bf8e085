// What a library has for a product besides the tiles of its menu, and what speaks against each in its choice: how often
// k is split, which products share k-steps, the habits.
#pragma once

#include <array>
#include <span>

#include "sim/kernels/tile_menu.h"

namespace ridgeline {

/// Candidates within this of the fastest tie: neither the law nor the library tells them apart for sure, and the
/// library's habits decide. It is also the most that a better chip can lose by a worse choice.
inline constexpr double kTied = 1.05;

inline constexpr std::array kPersistentSplits{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
inline constexpr int kMostSplits = 64, kFewSplits = 9, kMostRounds = 3, kMostTiledSplits = kFewSplits - 1;
using TiledSplits = std::array<int, kMostTiledSplits>;

/// Splits of a tiled kernel, ascending. Those for a second kernel fill whole rounds of the SMs, up to three and no more
/// than are resident at once (nearly all profiled ones), or are 8 or 16; in place few.
std::span<const int> tiled_splits(double tiles, double k, double sms, int blocks_per_sm, bool in_place,
                                  TiledSplits& room);

/// A second kernel adds up splits of long products only: of tiled kernels k is at least twice the shorter side in
/// nearly all profiled ones, of persistent ones eight times in all.
bool is_long(const GemmWork& problem);

/// The library turns on sharing of k-steps for few tiles of long products (at most two an SM in five, 80 k-steps or
/// more) and where it saves most of a round: the last one less than two fifths full, 28 k-steps or more. 33 of 230
/// profiled kernels; those with more rounds than kRoundsShared gain nothing by it.
bool suits_stream_k(const GemmLaw& law, const GemmWork& problem, const GemmTile& tile, const Gpu& gpu);

/// One of a menu's kernels on the problem.
struct Candidate {
  const TileChoice* choice = nullptr;
  int splits = 1;
  bool in_place = false;  ///< splits or k-steps added up by the kernel itself
  bool one_round = false;
  double waste = 0;  ///< share of the fullest SM's tiles, times SMs, that is none of the product
};

/// What speaks against a tied candidate in the library's choice, in shares of its time.
double dislike(const Candidate& candidate, const GemmConstants& constants);

}  // namespace ridgeline
