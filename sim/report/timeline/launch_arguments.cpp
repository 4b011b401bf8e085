#include "sim/report/timeline/launch_arguments.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "sim/occupancy/occupancy.h"
#include "sim/report/text/names.h"

namespace ridgeline {
namespace {

void add_operands(TextBuffer& out, const StepProgram& program, std::span<const Operand> operands) {
  out.add('[');
  for (const Operand& operand : operands) {
    if (out.back() == ']') out.add(',');
    out.wrote(fmt::format_to(out.room(80), FMT_COMPILE("[{},{},{}]"), operand.storage, operand.bytes,
                             program.storages[operand.storage].bytes));
  }
  out.add(']');
}

}  // namespace

void add_launch(JsonObject& arguments, const KernelLaunch& launch, const KernelTime& time, const Gpu& gpu) {
  const double blocks = static_cast<double>(launch.blocks()) / std::max(1, gpu.sm.count);
  const int warps = (launch.threads_per_block + kThreadsPerWarp - 1) / kThreadsPerWarp;
  arguments.add("registers per thread", launch.registers_per_thread);
  arguments.add("shared memory", launch.shared_bytes_per_block);
  arguments.add("blocks per SM", blocks).add("warps per SM", blocks * warps);
  arguments.add_with("grid", [&](TextBuffer& out) {
    out.wrote(fmt::format_to(out.room(80), FMT_COMPILE("[{},{},{}]"), launch.grid[0], launch.grid[1], launch.grid[2]));
  });
  arguments.add_with("block", [&](TextBuffer& out) {
    out.wrote(fmt::format_to(out.room(80), FMT_COMPILE("[{},1,1]"), launch.threads_per_block));
  });
  arguments.add("est. achieved occupancy %", std::lround(100.0 * time.occupancy));
  arguments.add("limited by", name_of(time.limited_by()));
  arguments.add("DRAM read bytes", std::llround(time.dram_read_bytes));
  arguments.add("DRAM written bytes", std::llround(time.dram_write_bytes));
  if (launch.flops > 0) arguments.add("FLOPs", launch.flops);
}

void add_copy(JsonObject& arguments, const FixedWork& work, double seconds) {
  arguments.add("bytes", std::llround(work.bytes));
  arguments.add("memory bandwidth (GB/s)", seconds > 0.0 ? work.bytes / seconds * 1e-9 : 0.0);
}

void add_storages(TextBuffer& out, const StepProgram& program, std::uint32_t call) {
  const std::span<const Operand> operands = program.operands_of(call);
  const std::size_t inputs = std::min<std::size_t>(program.trace->calls[call].inputs, operands.size());
  JsonObject(out)
      .add_with("reads", [&](TextBuffer& to) { add_operands(to, program, operands.first(inputs)); })
      .add_with("writes", [&](TextBuffer& to) { add_operands(to, program, operands.subspan(inputs)); });
}

}  // namespace ridgeline
