#include "sim/kernels/products/tile_menu.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/products/blackwell_menu.h"
#include "sim/kernels/products/gemm_candidates.h"
#include "sim/kernels/products/hopper_menus.h"
#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

using Menu = std::vector<TileChoice>;

TileChoice with_logarithms(TileChoice choice) {
  const double m = choice.tile.m, n = choice.tile.n;
  choice.log_aspect = std::abs(std::log(m / n));
  choice.log_area = std::log(m * n / (128.0 * 128.0));
  choice.log_deep = std::log(choice.tile.k / 32.0);
  return choice;
}

TileChoice choice_of(const GemmTileEntry& given) {
  GemmWork work{.tile_m = given.m, .tile_n = given.n, .tile_k = given.k, .stages = given.stages};
  work.tensor_memory = given.kernels == GemmClass::tcgen05_half;
  if (work.tensor_memory || given.kernels == GemmClass::wgmma_half || given.kernels == GemmClass::wgmma_tf32 ||
      given.kernels == GemmClass::wgmma_promoted || given.kernels == GemmClass::wgmma_row_scaled)
    work.family = GemmWork::Family::wgmma;
  return with_logarithms({.tile = tile_of(work),
                          .threads = 32 * given.warps,
                          .registers = given.registers,
                          .shared_bytes = given.shared_bytes,
                          .compiled_for_chip = false});
}

/// `stages` buffers of both operand panels in shared memory.
Menu as_profiled(std::initializer_list<MenuKernel> kernels, int element) {
  Menu menu;
  for (const MenuKernel& e : kernels)
    menu.push_back(
        with_logarithms({.tile = {.m = e.m, .n = e.n, .k = e.k, .stages = e.stages, .first_stages = e.stages},
                         .threads = e.threads,
                         .registers = e.registers,
                         .shared_bytes = (e.m + e.n) * e.k * e.stages * element,
                         .runs = e.runs}));
  return menu;
}

/// The same, every shape also turned round.
Menu menu_of(std::initializer_list<MenuKernel> kernels, int element) {
  Menu menu;
  for (MenuKernel e : kernels) {
    const Menu one = as_profiled({e}, element);
    std::swap(e.m, e.n);
    const Menu turned = as_profiled({e}, element);
    menu.push_back(one.front());
    if (e.m != e.n) menu.push_back(turned.front());
  }
  return menu;
}

/// A TMA kernel: as many stages as fit.
TileChoice persistent_choice(int m, int n, int k, int element, int most_stages, Runs runs) {
  constexpr int kSharedForStages = 215000;
  const int stages = std::min(most_stages, kSharedForStages / ((m + n) * k * element));
  const GemmWork work{.family = GemmWork::Family::wgmma, .tile_m = m, .tile_n = n, .tile_k = k, .stages = stages};
  return with_logarithms({.tile = tile_of(work),
                          .threads = 384,
                          .registers = 168,
                          .shared_bytes = (m + n) * k * element * stages + 4096,
                          .runs = runs});
}

/// Tiles of one SM, and of a pair that computes twice as many rows: each SM has half of the other operand's panel, so
/// that as much again has room for stages.
Menu tcgen05_half_menu() {
  Menu menu;
  for (const blackwell::Tile& given : blackwell::kTcgen05Half) {
    for (const bool turned : {false, true}) {
      if (turned && given.rows == given.columns) continue;
      const int m = turned ? given.columns : given.rows, n = turned ? given.rows : given.columns;
      const int panel = (given.rows + given.columns / (given.paired ? 2 : 1)) * blackwell::kDepth * 2;
      const int stages = std::min(blackwell::kMostStages, blackwell::kSharedForStages / panel);
      const GemmWork work{.family = GemmWork::Family::wgmma,
                          .tile_m = m,
                          .tile_n = n,
                          .tile_k = blackwell::kDepth,
                          .stages = stages,
                          .tensor_memory = true,
                          .paired = given.paired};
      menu.push_back(with_logarithms({.tile = tile_of(work),
                                      .threads = blackwell::kThreads,
                                      .registers = 168,
                                      .shared_bytes = panel * stages + 4096}));
    }
  }
  return menu;
}

/// Operands that are not contiguous along k are loaded in pieces of 32 of their rows: so in every profiled
/// kernel.
Menu wgmma_half_menu() {
  Menu menu;
  for (const hopper::Sides& sides : hopper::kWgmmaHalf) {
    const bool a = sides.m % 32 == 0, b = sides.n % 32 == 0;
    const auto layouts = static_cast<std::uint8_t>((b ? 1 : 0) + 2 + (a && b ? 4 : 0));
    menu.push_back(persistent_choice(sides.m, sides.n, 64, 2, 16, {{layouts, layouts, 0, layouts}}));
  }
  return menu;
}

Menu wgmma_promoted_menu() {
  Menu menu = wgmma_half_menu();
  std::erase_if(menu, [](const TileChoice& one) {
    return one.tile.m * one.tile.n > hopper::kMostOfPromoted || std::max(one.tile.m, one.tile.n) > 192;
  });
  return menu;
}

Menu wgmma_row_scaled_menu() {
  return {persistent_choice(hopper::kRowScaled.m, hopper::kRowScaled.n, 64, 2, 16, {{7, 0, 0, 0}})};
}

Menu wgmma_tf32_menu() {
  Menu menu;
  for (const MenuKernel& e : hopper::kWgmmaTf32) {
    menu.push_back(persistent_choice(e.m, e.n, e.k, 4, 8, e.runs));
    menu.push_back(menu.back());
    menu.back().tile.stream_k = true;
  }
  return menu;
}

// m, n, k, stages, threads, registers. Ampere's and Hopper's entries from profiles on an H200, Volta's and Turing's
// from kernel names published for them (volta_s884gemm, turing_s1688gemm: operands staged through registers, two
// buffers).
const std::initializer_list<MenuKernel> kAmpereHalf{{256, 128, 32, 3, 256, 220},
                                                    {128, 128, 32, 5, 128, 226},
                                                    {256, 64, 32, 4, 128, 228},
                                                    {128, 64, 32, 6, 128, 142},
                                                    {64, 64, 64, 5, 128, 110}};
const std::initializer_list<MenuKernel> kTwoBuffers{{256, 128, 32, 2, 256, 226},
                                                    {128, 128, 32, 2, 128, 226},
                                                    {256, 64, 32, 2, 128, 226},
                                                    {128, 64, 32, 2, 128, 140},
                                                    {64, 64, 32, 2, 128, 96}};
const std::initializer_list<MenuKernel> kHalfAlign4{
    {256, 128, 64, 3, 256, 226}, {256, 128, 32, 3, 256, 220}, {128, 128, 64, 3, 128, 236},
    {128, 128, 32, 4, 128, 222}, {256, 64, 64, 3, 128, 232},  {256, 64, 32, 4, 128, 230},
    {128, 64, 64, 3, 128, 156},  {128, 64, 32, 6, 128, 142},  {64, 64, 32, 6, 128, 90}};
const std::initializer_list<MenuKernel> kHalfAlign2{
    {256, 128, 32, 2, 256, 229}, {128, 128, 32, 2, 128, 252}, {64, 64, 32, 2, 128, 96}};
const std::initializer_list<MenuKernel> kTf32{
    {256, 128, 32, 3, 256, 225}, {256, 128, 16, 3, 256, 216}, {128, 128, 32, 3, 128, 228}, {128, 128, 16, 4, 128, 218},
    {256, 64, 32, 4, 128, 230},  {256, 64, 16, 4, 128, 218},  {128, 64, 32, 3, 128, 168},  {128, 64, 32, 6, 128, 168},
    {128, 64, 16, 6, 128, 136},  {64, 64, 32, 6, 128, 92},    {64, 64, 16, 6, 128, 88}};
const std::initializer_list<MenuKernel> kTf32Align4{{256, 128, 32, 3, 256, 225},
                                                    {128, 128, 32, 3, 128, 228},
                                                    {256, 64, 32, 3, 128, 230},
                                                    {128, 64, 32, 3, 128, 168},
                                                    {64, 64, 32, 6, 128, 100}};
// CUTLASS's fp32 kernels are not taken where both operands are contiguous along k, others of 128 x 128 not where A is
// not (7 of 239 products of an H200).
constexpr Runs kNotAlongK{{5, 5, 5, 7}}, kAlongM{{3, 3, 3, 7}};
const std::initializer_list<MenuKernel> kSimt{{256, 128, 8, 4, 256, 202, kNotAlongK},
                                              {128, 128, 8, 4, 128, 202, kNotAlongK},
                                              {128, 64, 8, 5, 128, 128, kNotAlongK},
                                              {64, 64, 8, 5, 128, 76, kNotAlongK},
                                              {128, 128, 8, 3, 128, 254, kAlongM},
                                              {256, 64, 8, 3, 128, 254, kAlongM},
                                              {128, 64, 8, 3, 128, 210},
                                              {64, 64, 8, 3, 128, 121},
                                              {128, 32, 8, 3, 128, 122},
                                              {64, 32, 8, 3, 64, 121},
                                              {32, 32, 8, 3, 64, 80}};
const std::initializer_list<MenuKernel> kSimtTwoBuffers{{128, 128, 8, 2, 256, 122, kAlongM},
                                                        {128, 64, 8, 2, 128, 122},
                                                        {64, 64, 8, 2, 64, 122},
                                                        {128, 32, 8, 2, 128, 84},
                                                        {32, 32, 8, 2, 64, 80}};

}  // namespace

std::span<const TileChoice> tile_menu(GemmClass kernel_class, Architecture architecture, bool batched) {
  static const Menu tcgen05_half = tcgen05_half_menu(), wgmma_half = wgmma_half_menu(), wgmma_tf32 = wgmma_tf32_menu(),
                    wgmma_promoted = wgmma_promoted_menu(), wgmma_row_scaled = wgmma_row_scaled_menu();
  static const Menu hopper_align4 = as_profiled(hopper::kHalfAlign4, 2),
                    hopper_align2 = as_profiled(hopper::kHalfAlign2, 2), hopper_tf32 = as_profiled(hopper::kTf32, 4),
                    hopper_tf32_align4 = as_profiled(hopper::kTf32Align4, 4),
                    hopper_simt = as_profiled(hopper::kSimt, 4);
  static const Menu ampere_half = menu_of(kAmpereHalf, 2), volta_half = menu_of(kTwoBuffers, 2),
                    align4 = menu_of(kHalfAlign4, 2), align2 = menu_of(kHalfAlign2, 2);
  static const Menu tf32 = menu_of(kTf32, 4), tf32_align4 = menu_of(kTf32Align4, 4), simt = menu_of(kSimt, 4),
                    simt_narrow = menu_of(kSimtTwoBuffers, 4), simt_batched = menu_of({{128, 128, 8, 3, 256, 122}}, 4);
  const bool hopper = architecture == Architecture::hopper || architecture == Architecture::blackwell;
  const bool before_ampere = architecture == Architecture::volta || architecture == Architecture::turing;
  switch (kernel_class) {
    case GemmClass::tcgen05_half: return tcgen05_half;
    case GemmClass::wgmma_half: return wgmma_half;
    case GemmClass::wgmma_tf32: return wgmma_tf32;
    case GemmClass::wgmma_promoted: return wgmma_promoted;
    case GemmClass::wgmma_row_scaled: return wgmma_row_scaled;
    case GemmClass::mma_half:
    case GemmClass::mma_half_narrow: return ampere_half;
    case GemmClass::mma_half_staged: return volta_half;
    case GemmClass::mma_half_align4: return hopper ? hopper_align4 : before_ampere ? volta_half : align4;
    case GemmClass::mma_half_align2: return hopper ? hopper_align2 : align2;
    case GemmClass::mma_tf32: return hopper ? hopper_tf32 : tf32;
    case GemmClass::mma_tf32_align4: return hopper ? hopper_tf32_align4 : tf32_align4;
    case GemmClass::simt:
      if (hopper) return hopper_simt;
      // Batched fp32 products on Ampere all ran ampere_sgemm_128x128 (138 kernel names of an A100 in the NeuSight
      // data).
      if (batched && (architecture == Architecture::ampere || architecture == Architecture::ada)) return simt_batched;
      return before_ampere ? simt_narrow : simt;
  }
  return simt;
}

namespace {

std::int64_t element_of(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::wgmma_tf32:
    case GemmClass::mma_tf32:
    case GemmClass::mma_tf32_align4:
    case GemmClass::simt: return 4;
    default: return 2;
  }
}

/// Registers of the SMs that the libraries' kernels were profiled on, and in which units warps are given them.
constexpr int kProfiledRegisters = 65536, kProfiledUnit = 256;
/// Sums a thread keeps, and what it needs besides, at least: addresses, a fragment of either operand.
constexpr double kBesidesSums = 24.0;
/// With fewer registers a thread nothing can be computed; an instruction names no more.
constexpr double kLeastRegisters = 16.0, kMostRegisters = 255.0;
/// Threads of a TMA kernel that compute nothing, and what they have.
constexpr int kProducers = 128, kProducerRegisters = 24;
/// What a sum that finds no register moves in a k-step: to the L1 and back.
constexpr double kBytesOfSpilled = 8.0;

/// Whether a chip has less of what kernels are compiled for than those that were profiled.
bool is_compiled_anew(const TileChoice& choice, const SmSpec& sm) {
  return choice.compiled_for_chip &&
         (sm.registers < kProfiledRegisters || sm.register_allocation_unit > kProfiledUnit ||
          choice.threads > sm.max_threads_per_block);
}

/// A chip with fewer registers, or that gives them out in larger pieces (half of one more is lost to each warp in the
/// mean), or blocks of fewer threads has its kernels compiled for them: as many blocks are resident as before, with
/// less to spare. Sums that find no room are spilled. False where no thread can run.
bool compile_for(TileChoice& choice, const SmSpec& sm) {
  const double share = std::min(1.0, static_cast<double>(sm.registers) / kProfiledRegisters),
               lost = 0.5 * std::max(0, sm.register_allocation_unit - kProfiledUnit) * choice.threads / kThreadsPerWarp,
               of_block = share * choice.threads * choice.registers - lost;
  const int threads = std::min(choice.threads, sm.max_threads_per_block);
  const double producers = choice.tile.wgmma_m > 0 ? static_cast<double>(kProducers) * threads / choice.threads : 0.0;
  const double computing = threads - producers,
               each = std::min(kMostRegisters, (of_block - producers * kProducerRegisters) / computing);
  if (threads < kThreadsPerWarp || each < kLeastRegisters) return false;
  const double wanted = static_cast<double>(choice.tile.m) * choice.tile.n / computing + kBesidesSums;
  choice.tile.spilled = kBytesOfSpilled * computing * std::max(0.0, wanted - each);
  choice.registers = std::max(1, static_cast<int>(std::min(kMostRegisters, of_block / threads)));
  choice.threads = threads;
  return true;
}

/// Bytes of k that an instruction multiplies at least: a k-step is no shorter.
double least_step(GemmClass kernel_class) { return kernel_class == GemmClass::simt ? 16.0 : 32.0; }

/// Gives a kernel the stages and the resident blocks that an SM has room for; false where not even two of the shortest
/// k-steps fit.
bool fit(TileChoice& choice, const ChipShape& chip, GemmClass kernel_class) {
  const std::int64_t element = element_of(kernel_class);
  SmSpec sm = chip.sm;
  const int registers = choice.registers, threads = choice.threads;
  if (is_compiled_anew(choice, sm)) {
    if (!compile_for(choice, sm)) return false;
    sm.registers = std::max(sm.registers, kProfiledRegisters);
    sm.register_allocation_unit = std::min(sm.register_allocation_unit, kProfiledUnit);
  }
  const auto resident = [&](std::int64_t shared_bytes) {
    return static_cast<double>(shared_bytes) > sm.shared_per_block.value() || choice.threads > sm.max_threads_per_block
               ? 0
               : occupancy_of(sm, threads, registers, shared_bytes).blocks;
  };
  // With fewer stages no more blocks are counted on than would be resident with all.
  const int built = occupancy_of(sm, threads, registers, choice.shared_bytes).blocks;
  // Persistent kernels are one block an SM.
  choice.tile.blocks_per_sm = choice.tile.wgmma_m > 0 ? 1 : std::max(1, built);
  if (resident(choice.shared_bytes) > 0) return true;

  // Of a pair of SMs each holds half of the panel that both read.
  const double not_held = choice.tile.paired ? 0.5 * choice.tile.wgmma_n : 0.0,
               stage = (choice.tile.m + choice.tile.n - not_held) * static_cast<double>(choice.tile.k * element);
  const double besides = choice.shared_bytes - choice.tile.stages * stage,
               room = std::min(sm.shared_per_block.value(), sm.shared_per_sm.value() -
                                                                sm.shared_reserved_per_block.value() -
                                                                sm.shared_allocation_unit.value()) -
                      besides;
  double stages = std::min(room / stage, static_cast<double>(choice.tile.stages));
  const auto step = static_cast<double>(choice.tile.k * element);
  if (!choice.compiled_for_chip) stages = std::floor(stages);
  if (stages < 2.0 * (choice.compiled_for_chip ? std::min(1.0, least_step(kernel_class) / step) : 1.0)) return false;
  choice.tile.stages = std::max(2, static_cast<int>(stages));
  choice.tile.ahead = stages >= 2.0 ? stages - 1.0 : 0.5 * stages;
  choice.shared_bytes = static_cast<int>(besides + stages * stage);
  return resident(choice.shared_bytes) > 0;
}

}  // namespace

GpuMenu menu_on(const ChipShape& chip, std::span<const TileChoice> entries, GemmClass kernel_class) {
  return menu_on(chip, entries, kernel_class, gemm_constants(kernel_class));
}

GpuMenu menu_on(const ChipShape& chip, std::span<const TileChoice> entries, GemmClass kernel_class,
                const GemmConstants& constants) {
  GpuMenu menu;
  const auto place_of = [](std::vector<float>& lengths, int length) {
    const auto found = std::find(lengths.begin(), lengths.end(), static_cast<float>(length));
    const auto place = static_cast<std::size_t>(found - lengths.begin());
    if (found == lengths.end()) lengths.push_back(static_cast<float>(length));
    if (place >= GpuMenu::kMostLengths)
      throw std::invalid_argument("a menu of matrix-product kernels has more than 256 different lengths");
    return static_cast<std::uint16_t>(place);
  };
  if (entries.size() > GpuMenu::kMostEntries)
    throw std::invalid_argument(fmt::format("a menu of matrix-product kernels of {} entries, at most {} are foreseen",
                                            entries.size(), GpuMenu::kMostEntries));
  menu.often_others = chip.architecture == Architecture::hopper || chip.architecture == Architecture::blackwell;
  for (const TileChoice& entry : entries) {
    TileChoice choice = entry;
    if (!fit(choice, chip, kernel_class)) continue;
    menu.entries.push_back(choice);
    menu.with_stream_k = menu.with_stream_k || choice.tile.stream_k;
    menu.shapes.push_back(choice.tile);
    menu.weights.push_back(static_cast<float>(menu.often_others ? 1.0 + dislike_of_tile(choice, constants) : 1.0));
    menu.places.push_back({place_of(menu.sides, choice.tile.m), place_of(menu.sides, choice.tile.n),
                           place_of(menu.depths, choice.tile.k)});
  }
  menu.weights.resize(menu.shapes.filled(), 1.0F);
  if (!menu.places.empty()) menu.places.resize(menu.shapes.filled(), menu.places.back());
  for (auto* lengths : {&menu.sides, &menu.depths})
    lengths->resize((lengths->size() + GemmTileShapes::kGroup - 1) / GemmTileShapes::kGroup * GemmTileShapes::kGroup,
                    1.0F);
  return menu;
}

namespace {

GpuMenu menu_of_class(const ChipShape& chip, GemmClass kernel_class, bool batched) {
  const auto known = tile_menu(kernel_class, chip.architecture, batched);
  std::vector<TileChoice> entries;
  if (!chip.gemm.concerns(kernel_class) || !chip.gemm.replace) entries.assign(known.begin(), known.end());
  for (const GemmTileEntry& given : chip.gemm.tiles)
    if (is_entry_of(given.kernels, kernel_class)) entries.push_back(choice_of(given));
  GpuMenu menu = menu_on(chip, entries, kernel_class);
  menu.changed = chip.gemm.concerns(kernel_class);
  return menu;
}

}  // namespace

GpuMenus::GpuMenus(const ChipShape& chip) {
  for (const auto& [name, kernel_class] : kGemmClassNames)
    menus_[static_cast<std::size_t>(kernel_class)] = menu_of_class(chip, kernel_class, false);
  simt_batched_ = menu_of_class(chip, GemmClass::simt, true);
  // A chip with too few registers for the one batched kernel runs the others over the batch.
  if (simt_batched_.entries.empty()) simt_batched_ = menus_[static_cast<std::size_t>(GemmClass::simt)];
}

GpuMenus::GpuMenus(const ChipShape& chip, GemmClass kernel_class, const TileChoice& only) {
  GpuMenu& menu = menus_[static_cast<std::size_t>(kernel_class)];
  menu = menu_on(chip, std::span(&only, 1), kernel_class);
  menu.often_others = false;
  std::fill(menu.weights.begin(), menu.weights.end(), 1.0F);
  if (kernel_class == GemmClass::simt) simt_batched_ = menu;
}

}  // namespace ridgeline
