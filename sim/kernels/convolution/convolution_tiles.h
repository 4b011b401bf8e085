// The tiles that convolutions' kernels come in, read from names and launches in profiles of an H200.
#pragma once

#include <array>
#include <span>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// m, n, k, threads, registers, shared memory [KiB].
struct ConvolutionTile {
  int m, n, k, threads, registers, shared_kib;
};

inline constexpr int kPersistentThreads = 384, kPersistentRegisters = 168, kPersistentShared = 226;
constexpr ConvolutionTile persistent_tile(int m, int n, int k) {
  return {m, n, k, kPersistentThreads, kPersistentRegisters, kPersistentShared};
}
inline constexpr std::array kWgmmaHalfTiles{persistent_tile(64, 64, 64),   persistent_tile(64, 128, 64),
                                            persistent_tile(128, 32, 32),  persistent_tile(128, 64, 32),
                                            persistent_tile(128, 64, 64),  persistent_tile(128, 128, 32),
                                            persistent_tile(128, 128, 64), persistent_tile(256, 64, 32),
                                            persistent_tile(256, 64, 64),  persistent_tile(256, 128, 64)};
inline constexpr std::array kWgmmaHalfWeightTiles{persistent_tile(64, 64, 64),   persistent_tile(64, 128, 64),
                                                  persistent_tile(64, 256, 64),  persistent_tile(128, 64, 64),
                                                  persistent_tile(128, 128, 64), persistent_tile(256, 64, 64),
                                                  persistent_tile(256, 128, 64)};
inline constexpr std::array kWgmmaTf32Tiles{
    persistent_tile(64, 32, 32),  persistent_tile(64, 64, 32),   persistent_tile(64, 128, 32),
    persistent_tile(64, 192, 32), persistent_tile(64, 256, 32),  persistent_tile(128, 32, 32),
    persistent_tile(128, 64, 32), persistent_tile(128, 128, 32), persistent_tile(128, 192, 32),
    persistent_tile(256, 32, 32), persistent_tile(256, 64, 32),  persistent_tile(256, 128, 32)};
inline constexpr std::array kWgmmaTf32InputTiles{persistent_tile(128, 64, 32), persistent_tile(128, 128, 32),
                                                 persistent_tile(256, 32, 32), persistent_tile(256, 64, 32),
                                                 persistent_tile(256, 128, 32)};
inline constexpr std::array kWgmmaTf32WeightTiles{persistent_tile(64, 64, 32), persistent_tile(64, 128, 32),
                                                  persistent_tile(128, 64, 32), persistent_tile(128, 128, 32),
                                                  persistent_tile(256, 64, 32)};
inline constexpr std::array kMmaHalfTiles{
    ConvolutionTile{256, 128, 64, 256, 230, 144}, ConvolutionTile{128, 128, 32, 128, 228, 80},
    ConvolutionTile{256, 64, 32, 128, 228, 80},   ConvolutionTile{64, 128, 32, 128, 142, 72},
    ConvolutionTile{64, 64, 32, 128, 90, 80},     ConvolutionTile{64, 64, 64, 128, 98, 80},
    ConvolutionTile{256, 32, 32, 128, 166, 72},   ConvolutionTile{128, 32, 32, 128, 128, 40},
    ConvolutionTile{64, 32, 64, 128, 96, 60}};
inline constexpr std::array kMmaTf32Tiles{
    ConvolutionTile{128, 128, 16, 128, 218, 64}, ConvolutionTile{256, 64, 16, 128, 218, 80},
    ConvolutionTile{64, 128, 16, 128, 136, 72},  ConvolutionTile{64, 64, 32, 128, 92, 96},
    ConvolutionTile{64, 64, 16, 128, 96, 48},    ConvolutionTile{128, 64, 16, 128, 136, 72},
    ConvolutionTile{256, 32, 16, 128, 166, 72}};
/// On the CUDA cores: products, and those whose results are scattered over images or filters.
inline constexpr std::array kCudaCoreTiles{ConvolutionTile{32, 32, 8, 64, 80, 6},
                                           ConvolutionTile{128, 32, 8, 128, 122, 15},
                                           ConvolutionTile{256, 64, 8, 128, 254, 30}};
/// Before Ampere, where fp32 convolutions have no other pipe, cuDNN has products of more tiles, in all directions
/// (names of volta_scudnn kernels and their launches in published traces of a ResNet-50 on a Tesla V100).
inline constexpr std::array kVoltaTiles{ConvolutionTile{128, 128, 8, 256, 122, 16},
                                        ConvolutionTile{128, 64, 8, 128, 122, 12},
                                        ConvolutionTile{64, 128, 8, 128, 122, 12}};
inline constexpr ConvolutionTile kScatteredImages{64, 32, 8, 64, 120, 6}, kScatteredWeights{32, 32, 8, 64, 120, 6};

/// Whether cuDNN has kVoltaTiles for the chip, and Winograd's form in every direction.
inline bool is_before_ampere(Architecture architecture) {
  return architecture == Architecture::volta || architecture == Architecture::turing;
}

/// Of kernels on tensor cores.
inline std::span<const ConvolutionTile> tensor_tiles(Gathering::Role role, GemmWork::Family family, bool half) {
  if (family == GemmWork::Family::mma_sync)
    return half ? std::span<const ConvolutionTile>(kMmaHalfTiles) : std::span<const ConvolutionTile>(kMmaTf32Tiles);
  if (role == Gathering::Role::weight_gradient)
    return half ? std::span<const ConvolutionTile>(kWgmmaHalfWeightTiles)
                : std::span<const ConvolutionTile>(kWgmmaTf32WeightTiles);
  if (half) return kWgmmaHalfTiles;
  return role == Gathering::Role::forward ? std::span<const ConvolutionTile>(kWgmmaTf32Tiles)
                                          : std::span<const ConvolutionTile>(kWgmmaTf32InputTiles);
}

}  // namespace ridgeline
