#include "sim/hierarchy/l2_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr double kSmallestGranule = 4096.0, kLargestGranule = 65536.0, kGranulesOfATensor = 512.0;

// Chosen by DRAM counters of consecutive kernels (measurements/h200/counters_chain.jsonl.gz) together with times of
// point-wise kernels over rotating buffers whose case is not held out; broad optima. Counters at other sizes, with
// which nothing was chosen: 7 % median (tests/hierarchy/unseen_counters_test.cpp).
/// Room of a written line, of which the far side of two partitions keeps a copy less often than of one read (1.5).
constexpr double kWrittenCopies = 1.25;
/// A dirty line ages this much more slowly than a clean one.
constexpr double kDirtyOutlives = 1.7;
/// Of too many dirty granules of one tensor, in how many of eight times the newest is cleaned and not the oldest. From
/// times of 1,503 products, attention and memory-bound kernels of the H200 that are not held out and that it changes
/// (mean error 6.53 % at 0, 6.28 at 3, 6.33 at 4, 6.42 at 8, when it was of tensors of any size).
constexpr std::uint64_t kNewest = 3, kOutOf = 8;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185u;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}

/// Of one tensor: 64 GiB in the largest granules.
constexpr double kMostGranulesOfATensor = 1 << 20;

double granule_of(double bytes) {
  double granule = kSmallestGranule;
  while (granule < kLargestGranule && granule * kGranulesOfATensor < bytes) granule *= 2.0;
  while (granule * kMostGranulesOfATensor < bytes) granule *= 2.0;
  return granule;
}

}  // namespace

L2Cache::L2Cache(const L2Spec& l2, std::size_t most_granules)
    : l2_(l2),
      capacity_(l2.replacement == L2Replacement::none ? 0.0 : l2.capacity.value()),
      partitions_(std::max(1, l2.partitions)),
      least_forgotten_at_(most_granules),
      forgotten_at_(most_granules) {
  slices_.resize(kSlices);
  slice_capacity_ = capacity_ / kSlices;
  slice_dirty_ = l2.dirty_fraction * slice_capacity_;
  // A ring of granules for memory that is used once: four times what fits.
  anonymous_.granule = kLargestGranule;
  anonymous_.count = static_cast<std::uint32_t>(4.0 * std::max(capacity_, kLargestGranule) / kLargestGranule) + 1;
  granules_.resize(anonymous_.count);
  for (Granule& granule : granules_) granule.storage = kNone;
}

double L2Cache::written_copies() const { return partitions_ > 1.0 ? kWrittenCopies : 1.0; }

double L2Cache::shared_copies(double readers) const {
  return 1.0 + (partitions_ - 1.0) * (1.0 - std::pow(partitions_, -readers));
}

std::uint8_t L2Cache::slice_of_part(std::uint32_t number, const Tensor& tensor) {
  return static_cast<std::uint8_t>(mix(number + mix(static_cast<std::uint64_t>(tensor.bytes))) % kSlices);
}

L2Cache::Tensor& L2Cache::tensor_of(std::uint32_t storage, double bytes) {
  if (storage >= tensors_.size()) tensors_.resize(std::max<std::size_t>(storage + 1, tensors_.size() * 2));
  Tensor& tensor = tensors_[storage];
  if (tensor.count > 0 && tensor.granule * tensor.count + 0.5 >= bytes) return tensor;
  // Forgotten while none of it was there: as large as it was.
  if (tensor.count == 0 && tensor.bytes > 0.0 &&
      tensor.granule * std::ceil(tensor.bytes / tensor.granule) + 0.5 >= bytes)
    bytes = tensor.bytes;
  // Larger than it seemed when first touched: forgotten, in a place of its own.
  for (std::uint32_t i = tensor.first; i < tensor.first + tensor.count; ++i)
    if (granules_[i].place != kNone) remove(slice_of(i), i);
  tensor.bytes = bytes;
  tensor.granule = granule_of(bytes);
  tensor.count = static_cast<std::uint32_t>(std::ceil(bytes / tensor.granule));
  tensor.first = static_cast<std::uint32_t>(granules_.size());
  tensor.in_slice.fill(0.0);
  count_work(tensor.count);
  granules_.resize(granules_.size() + tensor.count);
  for (std::uint32_t i = 0; i < tensor.count; ++i) {
    Granule& granule = granules_[tensor.first + i];
    granule.bytes = static_cast<float>(std::min(tensor.granule, bytes - static_cast<double>(i) * tensor.granule));
    granule.storage = storage;
    granule.number = i;
    granule.slice = slice_of_part(i, tensor);
    tensor.in_slice[granule.slice] += granule.bytes;
  }
  return tensor;
}

/// As tensor_of(), where none of the tensor will be there: it has a size, and no granules yet.
void L2Cache::note_size(std::uint32_t storage, double bytes) {
  if (storage >= tensors_.size()) tensors_.resize(std::max<std::size_t>(storage + 1, tensors_.size() * 2));
  Tensor& tensor = tensors_[storage];
  if (tensor.bytes > 0.0 && tensor.granule * std::ceil(tensor.bytes / tensor.granule) + 0.5 >= bytes) return;
  tensor.bytes = bytes;
  tensor.granule = granule_of(bytes);
  tensor.count = 0;
}

/// Gives the granules of tensors up of which none is there; the others move together and keep their neighbours. A list
/// of its own would need new pages each time.
void L2Cache::forget_absent_tensors() {
  if (granules_.size() < forgotten_at_) return;
  std::vector<Tensor*> lying;
  for (Tensor& tensor : tensors_)
    if (tensor.count > 0) lying.push_back(&tensor);
  std::ranges::sort(lying, {}, &Tensor::first);
  moved_.assign(granules_.size(), kNone);
  for (std::uint32_t i = 0; i < anonymous_.count; ++i) moved_[i] = i;
  std::uint32_t kept = anonymous_.count;
  for (Tensor* tensor : lying) {
    const auto begin = granules_.begin() + tensor->first, end = begin + tensor->count;
    if (std::none_of(begin, end, [](const Granule& granule) { return granule.place != kNone; })) tensor->count = 0;
    for (std::uint32_t i = 0; i < tensor->count; ++i) moved_[tensor->first + i] = kept + i;
    std::copy_n(begin, tensor->count, granules_.begin() + kept);
    tensor->first = kept;
    kept += tensor->count;
  }
  const auto move = [&](std::uint32_t& index) { index = index != kNone ? moved_[index] : kNone; };
  granules_.resize(kept);
  for (Granule& granule : granules_) {
    if (granule.place == kNone) continue;
    move(granule.newer);
    move(granule.older);
  }
  for (Slice& slice : slices_) {
    for (List& list : slice.lists) {
      move(list.newest);
      move(list.oldest);
    }
    for (std::uint32_t& member : slice.members) move(member);
  }
  forgotten_at_ = std::max(least_forgotten_at_, 2 * granules_.size());
}

void L2Cache::insert(Slice& slice, std::uint32_t index, bool newest) {
  Granule& granule = granules_[index];
  List& list = slice.lists[granule.dirty ? 1 : 0];
  if (newest) {
    granule.newer = kNone;
    granule.older = list.newest;
    (list.newest == kNone ? list.oldest : granules_[list.newest].newer) = index;
    list.newest = index;
  } else {
    granule.older = kNone;
    granule.newer = list.oldest;
    (list.oldest == kNone ? list.newest : granules_[list.oldest].older) = index;
    list.oldest = index;
  }
  granule.place = static_cast<std::uint32_t>(slice.members.size());
  slice.members.push_back(index);
  slice.room += granule.room;
  if (granule.dirty) slice.dirty += granule.bytes;
}

void L2Cache::remove(Slice& slice, std::uint32_t index) {
  Granule& granule = granules_[index];
  List& list = slice.lists[granule.dirty ? 1 : 0];
  (granule.newer == kNone ? list.newest : granules_[granule.newer].older) = granule.older;
  (granule.older == kNone ? list.oldest : granules_[granule.older].newer) = granule.newer;
  const std::uint32_t last = slice.members.back();
  slice.members[granule.place] = last;
  granules_[last].place = granule.place;
  slice.members.pop_back();
  granule.place = kNone;
  slice.room -= granule.room;
  if (granule.dirty) slice.dirty -= granule.bytes;
}

void L2Cache::evict(Slice& slice, L2Traffic& traffic) {
  std::uint32_t victim = kNone;
  if (l2_.replacement == L2Replacement::random) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    victim = slice.members[static_cast<std::size_t>((random_ >> 33) % slice.members.size())];
  } else {
    const std::uint32_t clean = slice.lists[0].oldest, dirty = slice.lists[1].oldest;
    const double slower = l2_.replacement == L2Replacement::aged ? kDirtyOutlives : 1.0;
    if (clean == kNone) victim = dirty;
    else if (dirty == kNone) victim = clean;
    else victim = clock_ - granules_[clean].touched >= (clock_ - granules_[dirty].touched) / slower ? clean : dirty;
  }
  if (granules_[victim].dirty) traffic.written_back += granules_[victim].bytes;
  remove(slice, victim);
  granules_[victim].dirty = false;
}

void L2Cache::clean_oldest(Slice& slice, L2Traffic& traffic) {
  const std::uint32_t index = slice.lists[1].oldest;
  traffic.written_back += granules_[index].bytes;
  remove(slice, index);
  granules_[index].dirty = false;
  insert(slice, index, false);
}

/// Of tensors of which the slice gets more than may be dirty, by a hash of which part of it this is: a step that is
/// repeated cleans the same parts again.
bool L2Cache::cleans_newest(std::uint32_t index) const {
  const Granule& granule = granules_[index];
  if (index < anonymous_.count || tensors_[granule.storage].in_slice[granule.slice] <= slice_dirty_) return false;
  return mix(mix(granule.number)) % kOutOf < kNewest;
}

void L2Cache::touch(std::uint32_t index, bool writes, double copies, L2Traffic& traffic) {
  Granule& granule = granules_[index];
  traffic.bytes += granule.bytes;
  clock_ += granule.bytes;
  const bool through = writes && l2_.writes == L2Writes::through;
  if (through) traffic.written_back += granule.bytes;
  if (absent()) {
    traffic.missed += granule.bytes;
    if (writes && !through) traffic.written_back += granule.bytes;
    return;
  }
  Slice& slice = slice_of(index);
  const bool resident = granule.place != kNone;
  if (resident) remove(slice, index);
  else traffic.missed += granule.bytes;
  if (granule.dirty) traffic.dirty += granule.bytes;
  const float room = granule.bytes * static_cast<float>(copies);
  granule.room = resident ? std::max(granule.room, room) : room;
  granule.touched = clock_;
  if (writes) granule.dirty = !through;
  while (!slice.members.empty() && slice.room + granule.room > slice_capacity_) evict(slice, traffic);
  insert(slice, index);
  while (slice.dirty > slice_dirty_ && slice.lists[1].oldest != index) {
    if (!cleans_newest(index)) {
      clean_oldest(slice, traffic);
      continue;
    }
    traffic.written_back += granule.bytes;
    remove(slice, index);
    granule.dirty = false;
    insert(slice, index);
    return;
  }
}

L2Traffic L2Cache::touch_run(const Run& run, bool writes, double copies) {
  L2Traffic traffic;
  forget_absent_tensors();
  const Tensor& tensor = tensor_of(run.storage, run.offset + run.bytes);
  const double first = run.offset + run.begin * run.bytes, last = run.offset + run.end * run.bytes;
  const auto from = static_cast<std::uint32_t>(std::ceil(first / tensor.granule - 1e-9));
  const auto to = std::min(tensor.count, static_cast<std::uint32_t>(std::ceil(last / tensor.granule - 1e-9)));
  count_work(to > from ? to - from : 0);
  for (std::uint32_t i = from; i < to; ++i) touch(tensor.first + i, writes, copies, traffic);
  return traffic;
}

L2Traffic L2Cache::read(const Run& run, double copies) { return touch_run(run, false, copies); }
L2Traffic L2Cache::write(const Run& run) { return touch_run(run, true, written_copies()); }

void L2Cache::count_work(std::uint64_t granules) {
  keep_budget_often("simulating the L2");
  work_ += granules;
  if (work_ <= kMostWork) return;
  throw UserError(fmt::format("the kernels touch more than {} million parts of tensors: engine analytic predicts them",
                              kMostWork / 1'000'000));
}

void L2Cache::anonymous(double bytes, bool writes, L2Traffic& traffic) {
  const double copies = writes ? written_copies() : stream_copies();
  while (bytes > 0.0) {
    const std::uint32_t index = next_anonymous_;
    next_anonymous_ = (next_anonymous_ + 1) % anonymous_.count;
    Granule& granule = granules_[index];
    if (granule.place != kNone) {
      if (granule.dirty) traffic.written_back += granule.bytes;
      remove(slice_of(index), index);
      granule.dirty = false;
    }
    granule.bytes = static_cast<float>(std::min(bytes, kLargestGranule));
    granule.slice = static_cast<std::uint8_t>(anonymous_turn_++ % kSlices);
    touch(index, writes, copies, traffic);
    bytes -= kLargestGranule;
  }
}

L2Traffic L2Cache::read_once(double bytes) {
  L2Traffic traffic;
  anonymous(bytes, false, traffic);
  return traffic;
}
L2Traffic L2Cache::write_once(double bytes) {
  L2Traffic traffic;
  anonymous(bytes, true, traffic);
  return traffic;
}

std::size_t L2Cache::parts_of(double bytes) { return static_cast<std::size_t>(bytes / granule_of(bytes)) + 1; }

std::size_t L2Cache::resident_parts() const {
  std::size_t sum = 0;
  for (const Slice& slice : slices_) sum += slice.members.size();
  return sum;
}

L2Cache::State L2Cache::state(std::vector<std::uint32_t>& names) const {
  State result;
  ++naming_;
  const auto give = [&](std::uint32_t storage, std::uint32_t name) {
    if (storage >= named_.size()) named_.resize(std::max<std::size_t>(storage + 1, tensors_.size()));
    named_[storage] = {naming_, name};
  };
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    give(names[i], i);
    result.tensor_bytes.push_back(names[i] < tensors_.size() ? tensors_[names[i]].bytes : 0.0);
  }
  result.parts.reserve(resident_parts());
  for (const Slice& slice : slices_) {
    for (const List& list : slice.lists) {
      for (std::uint32_t at = list.newest; at != kNone; at = granules_[at].older) {
        const Granule& granule = granules_[at];
        std::uint32_t name = kNone;
        if (granule.storage != kNone) {
          if (granule.storage >= named_.size() || named_[granule.storage].naming != naming_) {
            give(granule.storage, static_cast<std::uint32_t>(names.size()));
            names.push_back(granule.storage);
            result.tensor_bytes.push_back(tensors_[granule.storage].bytes);
          }
          name = named_[granule.storage].name;
        }
        result.parts.push_back({name, granule.number, granule.bytes, granule.room, clock_ - granule.touched});
      }
      result.list_ends.push_back(static_cast<std::uint32_t>(result.parts.size()));
    }
  }
  result.turn = anonymous_turn_ % kSlices;
  return result;
}

void L2Cache::restore(const State& state, std::span<const std::uint32_t> names) {
  for (Slice& slice : slices_) {
    for (const std::uint32_t index : slice.members) {
      granules_[index].place = kNone;
      granules_[index].dirty = false;
    }
    slice = {};
  }
  forget_absent_tensors();
  std::vector<char> is_there(state.tensor_bytes.size());
  for (const State::Part& part : state.parts)
    if (part.tensor != kNone) is_there[part.tensor] = 1;
  for (std::size_t i = 0; i < state.tensor_bytes.size(); ++i) {
    if (is_there[i] != 0) tensor_of(names[i], state.tensor_bytes[i]);
    else if (state.tensor_bytes[i] > 0.0) note_size(names[i], state.tensor_bytes[i]);
  }
  std::size_t begin = 0;
  for (std::size_t l = 0; l < state.list_ends.size(); ++l) {
    Slice& slice = slices_[l / 2];
    for (std::size_t i = state.list_ends[l]; i-- > begin;) {  // oldest first
      const State::Part& part = state.parts[i];
      std::uint32_t index = 0;
      if (part.tensor == kNone) {
        index = next_anonymous_;
        next_anonymous_ = (next_anonymous_ + 1) % anonymous_.count;
      } else {
        index = tensors_[names[part.tensor]].first + part.number;
      }
      Granule& granule = granules_[index];
      granule.bytes = part.bytes;
      granule.room = part.room;
      granule.touched = clock_ - part.age;
      granule.dirty = l % 2 == 1;
      granule.slice = static_cast<std::uint8_t>(l / 2);
      insert(slice, index);
    }
    begin = state.list_ends[l];
  }
  anonymous_turn_ = state.turn;
}

double L2Cache::resident_bytes() const {
  double sum = 0;
  for (const Slice& slice : slices_)
    for (const std::uint32_t index : slice.members) sum += granules_[index].bytes;
  return sum;
}
double L2Cache::dirty_bytes() const {
  double sum = 0;
  for (const Slice& slice : slices_) sum += slice.dirty;
  return sum;
}

}  // namespace ridgeline
