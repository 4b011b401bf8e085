// The L2 as slices of granules: which parts of which tensors it holds, which of them are dirty, and what leaves.
//
// A granule is a run of 4 to 64 KiB of one tensor, as fine as leaves a tensor about 512 of them (longer in tensors of
// more than 64 GiB, which no device holds); it comes and goes as a whole. Granules are spread over slices by a hash of
// their place in the tensor and its size; each slice replaces its own. A chip whose L2 has two partitions keeps a
// second copy of what SMs of the other side read: a granule takes the room of its copies. Dirty granules leave as DRAM
// writes, at the latest when more of a slice is dirty than L2Spec::dirty_fraction. Deterministic. Tested against a line
// by line cache by tests/hierarchy/l2_cache_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Bytes that an access moved: of `bytes` asked for, `missed` were not there and `dirty` were there and dirty;
/// `written_back` is what had to leave.
struct L2Traffic {
  double bytes = 0, missed = 0, dirty = 0, written_back = 0;
  L2Traffic& operator+=(const L2Traffic& other) {
    bytes += other.bytes;
    missed += other.missed;
    dirty += other.dirty;
    written_back += other.written_back;
    return *this;
  }
};

class L2Cache {
 public:
  /// Granules of all tensors (about 110 MB) beyond which absent tensors are forgotten. Changes no result.
  static constexpr std::size_t kMostGranules = std::size_t{1} << 21;
  /// Granules touched and made by one L2 before a UserError ends the simulation, which would take more than 10 s.
  static constexpr std::uint64_t kMostWork = 150'000'000;
  explicit L2Cache(const L2Spec& l2, std::size_t most_granules = kMostGranules);

  /// A run of a tensor's bytes, as the shares of it where the run begins and ends. Runs that join touch each granule
  /// of the tensor once.
  struct Run {
    std::uint32_t storage = 0;
    double offset = 0, bytes = 0;  ///< the tensor: where it begins in its storage, and its size
    double begin = 0, end = 1;
  };
  /// Reads a run; `copies` is the room its granules take (1: one partition; see stream_copies and shared_copies).
  L2Traffic read(const Run& run, double copies);
  L2Traffic write(const Run& run);
  /// Memory that was never seen and never will be again.
  L2Traffic read_once(double bytes);
  L2Traffic write_once(double bytes);

  /// Copies of data that one SM reads: a second one when it sits on the far side of the partitions …
  [[nodiscard]] double stream_copies() const { return shared_copies(1.0); }
  /// … and of data that `readers` of them read, each on any side.
  [[nodiscard]] double shared_copies(double readers) const;
  [[nodiscard]] double written_copies() const;

  /// All that what happens next depends on. Tensors go by the order of a list of names, so that states are equal that
  /// differ only in which storages they are about.
  struct State {
    struct Part {
      std::uint32_t tensor = 0, number = 0;
      float bytes = 0, room = 0;
      double age = 0;  ///< bytes asked for since it was touched
      bool operator==(const Part&) const = default;
    };
    std::vector<Part> parts;               ///< slice by slice, the clean ones, the dirty ones, newest first
    std::vector<std::uint32_t> list_ends;  ///< in `parts`
    std::vector<double> tensor_bytes;      ///< of the named tensors; 0: not seen yet
    std::uint32_t turn = 0;
    bool operator==(const State&) const = default;
  };
  /// `names`: storages in an order of the caller's; other storages that are there follow.
  State state(std::vector<std::uint32_t>& names) const;
  /// A state of this L2, or of another with the same L2Spec, about the storages `names`. Not with random replacement.
  void restore(const State& state, std::span<const std::uint32_t> names);

  [[nodiscard]] std::size_t resident_parts() const;
  /// Granules of a tensor of so many bytes.
  static std::size_t parts_of(double bytes);
  [[nodiscard]] double resident_bytes() const;
  [[nodiscard]] double dirty_bytes() const;
  [[nodiscard]] bool absent() const { return capacity_ <= 0; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr int kSlices = 8;  ///< fewer make the edge of the capacity sharper
  struct Granule {
    std::uint32_t newer = kNone, older = kNone;  ///< neighbours in the slice's list
    std::uint32_t place = kNone;                 ///< in the slice's `members`; kNone while not resident
    float bytes = 0, room = 0;
    double touched = 0;                     ///< value of clock_
    std::uint32_t storage = 0, number = 0;  ///< the tensor it is a part of, and which part
    std::uint8_t slice = 0;
    bool dirty = false;
  };
  struct List {
    std::uint32_t newest = kNone, oldest = kNone;
  };
  struct Slice {
    List lists[2];  ///< clean, dirty
    std::vector<std::uint32_t> members;
    double room = 0, dirty = 0;
  };
  struct Tensor {
    std::uint32_t first = 0, count = 0;
    double granule = 0, bytes = 0;
    std::array<double, kSlices> in_slice{};  ///< bytes of it that each slice gets
  };
  struct Named {
    std::uint64_t naming = 0;
    std::uint32_t name = 0;
  };

  static std::uint8_t slice_of_part(std::uint32_t number, const Tensor& tensor);
  Tensor& tensor_of(std::uint32_t storage, double bytes);
  void note_size(std::uint32_t storage, double bytes);
  void forget_absent_tensors();
  void touch(std::uint32_t index, bool writes, double copies, L2Traffic& traffic);
  L2Traffic touch_run(const Run& run, bool writes, double copies);
  void count_work(std::uint64_t granules);
  void anonymous(double bytes, bool writes, L2Traffic& traffic);
  void insert(Slice& slice, std::uint32_t index, bool newest = true);
  void remove(Slice& slice, std::uint32_t index);
  void evict(Slice& slice, L2Traffic& traffic);
  void clean_oldest(Slice& slice, L2Traffic& traffic);
  /// Which of too many dirty granules is cleaned: the one just written, or the one whose write is the longest ago. An
  /// output that is larger than what may be dirty, and is written again and again, stays dirty in part.
  [[nodiscard]] bool cleans_newest(std::uint32_t index) const;
  [[nodiscard]] Slice& slice_of(std::uint32_t index) { return slices_[granules_[index].slice]; }

  L2Spec l2_;
  double capacity_, partitions_, clock_ = 0;
  double slice_capacity_ = 0, slice_dirty_ = 0;
  std::uint64_t work_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15u;
  std::vector<Granule> granules_;
  std::vector<std::uint32_t> moved_;               ///< by granule: its place after forget_absent_tensors()
  std::size_t least_forgotten_at_, forgotten_at_;  ///< how many there are when absent tensors are forgotten
  std::vector<Tensor> tensors_;                    ///< by storage
  std::vector<Slice> slices_;
  Tensor anonymous_;
  std::uint32_t next_anonymous_ = 0, anonymous_turn_ = 0;
  mutable std::vector<Named> named_;  ///< by storage: its name in the latest list of names
  mutable std::uint64_t naming_ = 0;
};

}  // namespace ridgeline
