#include "sim/timing/gemm_floor.h"

namespace ridgeline {

void GemmTileShapes::push_back(const GemmTile& tile) {
  const double m = tile.m, n = tile.n;
  area.push_back(m * n);
  k.push_back(tile.k);
  stages.push_back(tile.stages);
  blocks.push_back(tile.blocks_per_sm);
  volume.push_back(m * n * tile.k);
  panels.push_back(tile.k * static_cast<double>(tile.wgmma_m + (tile.wgmma_m + 63) / 64 * tile.wgmma_n));
  sides.push_back(tile.k * (m + n));
  depth.push_back(1.0 / std::max(1, tile.stages - 1));
}

void GemmFloor::whole(const GemmTileShapes& tiles, const GemmTilings& tilings, double* seconds) const {
  // A copy that nothing else can point to keeps its numbers in registers; a loop without a branch runs on vectors.
  const GemmFloor floor = *this;
  const GemmTilings on = tilings;
  const std::size_t count = tiles.area.size();
  if (persistent_)
    for (std::size_t i = 0; i < count; ++i) seconds[i] = floor.least(floor.whole_persistent(tiles, on, i));
  else
    for (std::size_t i = 0; i < count; ++i) seconds[i] = floor.least(floor.whole_tiled(tiles, on, i));
}

GemmFloor::GemmFloor(const GemmLaw& law)
    : persistent_(law.persistent_), cuda_cores_(law.cuda_cores_), k_(law.k_), sms_(law.sms_), per_sm_(1.0 / law.sms_) {
  const GemmConstants& c = law.c_;
  const double stored = std::min(law.a_stored_, law.b_stored_);
  math_ = 1.0 / (law.rate_ * c.utilization);
  busy_ = 1.0 / law.rate_;
  panel_ = stored * law.element_ / law.shared_bytes_;
  side_ = stored * law.element_ / c.port_bytes;
  latency_ = c.latency_cycles;
  issue_ = 1.0 / law.issue_rate_;
  load_a_ = law.a_stored_ * law.load_slots_;
  load_b_ = law.b_stored_ * law.load_slots_;
  load_step_ = c.step_cycles;
  const double penalty = persistent_ ? law.store_penalty_ : 1.0;
  store_ = law.output_element_ * penalty / c.epilogue_bytes;
  partial_store_ = 4.0 * penalty / c.epilogue_bytes;
  epilogue_ = c.epilogue_cycles;
  exposed_ = 1.0 - c.epilogue_overlap;
  exposed_step_ = c.exposed_cycles;
  handoff_ = c.handoff_cycles;
  clock_ = law.clock_;
  // Time falls with the busy share only while the clock loses less than half by it.
  droop_ = 2.0 * law.droop_ < law.clock_ ? law.droop_ : 0.0;
  stage_ = c.stage_cycles / law.clock_;
  start_ = law.fixed_;
  read_ = law.first_loads_;
  exposed_reads_ = c.first_loads * read_;
  traffic_ = law.first_loads_ + law.written_time_;
  memset_ = law.memset_;
  const double results = law.m_ * law.n_ * law.batch_ / (c.split_bandwidth * law.dram_bandwidth_);
  reduction_ = c.split_cycles / law.clock_ + law.output_element_ * results;
  reduction_each_ = c.split_step_cycles / law.clock_ + 4.0 * results;
}

}  // namespace ridgeline
