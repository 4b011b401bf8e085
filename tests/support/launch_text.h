// The kernels of an op as text, two lines each, so that a test compares all of what was lowered with what it should be.
//
//   name [kind] time-class type pipe: grid x threads, registers, shared memory
//     work; flops, what it reads -> what it writes
//
// What a kernel does not have (no second grid dimension, no tail) is left out. Operands are named by their number,
// memory of the op itself `t`; bytes follow, after a slash those asked of the L2, after two those asked of the L1.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/kernels/lowering.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline::testing_support {

inline std::string number_text(double value) { return fmt::format("{:.9g}", value); }

/// " label value" unless it is what is understood without saying.
inline std::string unless(double value, double understood, std::string_view label) {
  return value == understood ? "" : fmt::format(" {} {}", label, number_text(value));
}

inline std::string_view class_text(TimeClass time_class) {
  switch (time_class) {
    case TimeClass::tensor_contraction: return "contraction";
    case TimeClass::normalization: return "normalization";
    case TimeClass::elementwise: return "elementwise";
    case TimeClass::optimizer: return "optimizer";
    case TimeClass::copy: return "copy";
    case TimeClass::communication: return "communication";
  }
  return "?";
}

inline std::string_view pipe_text(Pipe pipe) {
  switch (pipe) {
    case Pipe::none: return "no pipe";
    case Pipe::fp32: return "cores";
    case Pipe::tensor_wgmma: return "wgmma";
    case Pipe::tensor_mma: return "mma";
  }
  return "?";
}

inline std::string accesses_text(const std::vector<Access>& accesses) {
  std::string text;
  for (const Access& access : accesses) {
    text += access.operand == Access::kTemporary ? " t" : access.operand == Access::kUntracked ? " list" : " #";
    if (access.operand >= 0) text += fmt::format("{}", access.operand);
    if (access.operand == Access::kUntracked)
      text += fmt::format("{}[{}..{}]", access.list, number_text(access.from), number_text(access.to));
    text += ":" + number_text(access.bytes);
    if (access.requested != 0.0 && access.requested != access.bytes) text += "/" + number_text(access.requested);
    if (access.loaded != 0.0 && access.loaded != access.requested) text += "//" + number_text(access.loaded);
  }
  return text;
}

inline std::string text_of(const MemoryBoundWork& work) {
  std::string text = unless(work.elements, 0.0, "elements") + unless(work.padded_elements, 0.0, "padded") +
                     unless(work.active_blocks, 0.0, "active") + unless(work.iterations, 1.0, "passes") +
                     unless(work.tail_steps, 0.0, "tail");
  if (work.reread_bytes != 0.0 || work.reread_row_bytes != 0.0)
    text += fmt::format(" again {} of rows {}", number_text(work.reread_bytes), number_text(work.reread_row_bytes));
  if (work.reread_through_l1) text += " through L1";
  if (work.crowded_as_here) text += " crowded";
  return text;
}

inline std::string text_of(const GemmWork& work) {
  static constexpr std::string_view kFamilies[]{"wgmma", "mma_sync", "simt"};
  static constexpr std::string_view kLayouts[]{"nn", "nt", "tn", "tt"};
  static constexpr std::string_view kRoles[]{"none",   "forward", "input gradient", "weight gradient",
                                             "images", "filters"};
  std::string text =
      fmt::format(" {} {} {}{}x{}x{} {} by {} bytes, tile {}x{}x{} stages {}", kFamilies[static_cast<int>(work.family)],
                  name_of(work.type), work.batch == 1 ? "" : fmt::format("{} of ", work.batch), work.m, work.n, work.k,
                  kLayouts[work.layout], work.alignment, work.tile_m, work.tile_n, work.tile_k, work.stages);
  text += unless(work.split_k, 1, "splits") + unless(work.first_stages, 0, "built with") +
          unless(work.blocks_per_sm, 1, "an SM") + unless(work.distinct_reads, 1.0, "distinct") +
          unless(work.product_time, 1.0, "time");
  if (work.cluster_m != 1 || work.cluster_n != 1) text += fmt::format(" cluster {}x{}", work.cluster_m, work.cluster_n);
  if (work.bias) text += " bias";
  if (work.stream_k) text += " shares steps";
  if (work.sparse != SparseOperand::none) text += work.sparse == SparseOperand::a ? " sparse A" : " sparse B";
  if (work.always_summed) text += " summed";
  if (work.of_convolution) text += " of cuDNN";
  if (work.reduces_splits) text += " adds splits";
  text += unless(static_cast<int>(work.scaling), 0, "scaling");
  const Gathering& gathering = work.gathering;
  if (gathering.role != Gathering::Role::none)
    text += fmt::format(" gathers {}: taps {} channels {} phases {}{}{}", kRoles[static_cast<int>(gathering.role)],
                        gathering.taps, gathering.channels, gathering.phases, gathering.dense_taps ? " dense" : "",
                        gathering.indexed ? " indexed" : "") +
            unless(gathering.scattered_rows, 0.0, "scattered");
  return text;
}

inline std::string text_of(const AttentionWork& work) {
  static constexpr std::string_view kParts[]{"forward", "backward", "layout copy"};
  static constexpr std::string_view kBackends[]{"flash", "cudnn", "efficient"};
  std::string text = fmt::format(" {} {} {} batch {} heads {} queries {} keys {} d {}", kBackends[work.backend],
                                 kParts[static_cast<int>(work.part)], name_of(work.type), work.batch, work.heads,
                                 work.seq_q, work.seq_k, work.head_dim);
  if (work.part != AttentionWork::Part::layout_copy) text += fmt::format(" tile {}x{}", work.tile_q, work.tile_k);
  text += unless(work.splits, 1, "splits") + unless(work.tiles_together, 1, "together") +
          unless(static_cast<double>(work.kv_heads), 0.0, "kv") + unless(work.blocks_per_sm, 1, "an SM") +
          unless(work.tile_time, 1.0, "time");
  if (work.causal) text += " causal";
  if (work.dropout) text += " dropout";
  if (work.bias) text += " bias";
  if (work.padded_head) text += " padded";
  if (work.persistent) text += " persistent";
  if (work.lengths.any()) text += " packed";
  return text;
}

inline std::string text_of(const FixedWork& work) {
  static constexpr std::string_view kWhat[]{"memset",          "copy",          "upload",       "download",
                                            "pageable upload", "pageable down", "small helper", "layout change",
                                            "collective"};
  return fmt::format(" {} {}", kWhat[static_cast<int>(work.what)], number_text(work.bytes)) +
         unless(work.blocks, 1.0, "blocks");
}

inline std::string text_of(const KernelLaunch& launch) {
  std::string text = launch.name;
  if (const auto* work = std::get_if<MemoryBoundWork>(&launch.work))
    text += fmt::format(" [{}]", name_of(static_cast<MemoryBoundKernel>(work->kernel_class)));
  text += fmt::format(" {} {} {}: {}", class_text(launch.time_class), name_of(launch.type), pipe_text(launch.pipe),
                      launch.grid[0]);
  if (launch.grid[1] != 1 || launch.grid[2] != 1) text += fmt::format(",{}", launch.grid[1]);
  if (launch.grid[2] != 1) text += fmt::format(",{}", launch.grid[2]);
  text += fmt::format(" x {}, {} registers", launch.threads_per_block, launch.registers_per_thread);
  text += unless(static_cast<double>(launch.shared_bytes_per_block), 0.0, "shared");
  text += "\n " + std::visit([](const auto& work) { return text_of(work); }, launch.work) + ";";
  text += unless(launch.flops, 0.0, "flops");
  text += accesses_text(launch.reads) + " ->" + accesses_text(launch.writes);
  if (launch.follows_without_gap) text += " (no gap)";
  return text;
}

/// All launches, and the memory that they take.
inline std::string text_of(const LoweredOp& made) {
  std::string text;
  for (const KernelLaunch& launch : made.launches) text += "\n" + text_of(launch);
  if (!made.temporaries.empty()) text += fmt::format("\ntemporaries {}", fmt::join(made.temporaries, " "));
  if (made.approximated) text += "\napproximated";
  return text;
}

}  // namespace ridgeline::testing_support
