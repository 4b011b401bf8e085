// Ranges of predicted times, from errors on measured kernels, by GPU, kind of operation and size.
//
// hw/residuals.json holds, for each measured GPU and each kind of operation (operation_kind.h), the 4.5 % and 95.5 %
// quantiles of measured / predicted (kShortestKernel at least) over cases that no constant was fitted on, the widest of
// usual shapes, unusual ones and published times. `ridgeline validate --write-residuals` makes the file from the
// committed measurements (sim/study/validation/residual_table.h): a new measurement counts without a change here.
//
// A prediction is validated where the GPU, the operation, its type and law, the size and the version of the software
// were measured together. Numbers decide which GPU was measured, never names. Any other prediction is estimated:
//
//   no row of the operation   the errors of the GPU's other operations, each left out of its own range, in equal parts
//   no row of the GPU         on either side, with w the half-widths in the logarithm of time, d the distances
//                             (hardware/chip_distance.h) of measured GPUs and D the least of them, and m the half-width
//                             of all dies' errors in equal parts:
//                               near = max over GPUs (w - kFading max(0, d - max(D, kNearby)))
//                               half-width = near + min(1, D / kStranger) max(0, m - near) + kWidening D
//                             where near exceeds m, its excess goes between kNearby and kStranger.
//
// A GPU that differs in one number begins with the range of the measured one; a stranger has the errors that GPUs show
// when they are left out (tests/study/left_out_gpus_test.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/answer/ranges/operation_kind.h"
#include "sim/hardware/gpu.h"
#include "sim/units/lazy.h"

namespace ridgeline {

/// Half-width, in the logarithm of time, that a distance of 1 adds to a range.
inline constexpr double kWidening = 0.01;
/// Measured GPUs that are this near count in full (a number doubled is 0.69 away) …
inline constexpr double kNearby = 1.0;
/// … others lose this much half-width for a distance of 1 beyond the nearest.
inline constexpr double kFading = 0.3;
/// Distance from which on a GPU is a stranger.
inline constexpr double kStranger = 2.0;

/// No kernel takes less (the shortest measured: 0.7 us). What a law predicts below it, the roofline of operands that
/// the L2 holds above all, has the range of this time.
inline constexpr Seconds kShortestKernel{0.5e-6};

/// Rows of a kind and size that make it measured.
inline constexpr int kFewestRows = 3;
/// A time up to this many times the longest measured of a kind is of a measured size.
inline constexpr double kBeyondMeasured = 2.0;

/// The evidence behind a range, from the best to none.
enum class Evidence : std::uint8_t {
  measured,   ///< rows of this GPU, operation, type, law, size and software
  software,   ///< the same under another version of the software
  size,       ///< the same in other sizes
  type,       ///< the operation in other types or by another law
  operation,  ///< other operations of this GPU
  gpu,        ///< other GPUs
  none        ///< nothing: the range is a guess
};

/// Factors on a predicted time: the measurement lies between low·t and high·t nine times in ten. low <= 1 <= high.
struct Range {
  double low = 0.5, high = 2.0;
  bool validated = false;
  Evidence evidence = Evidence::none;
  Seconds longest{0};  ///< measured of the kind on this GPU
  /// The larger of both sides, in percent.
  [[nodiscard]] double percent() const;
};

/// Why a range is an estimate, in one clause without its own width; "" where it is validated.
std::string reason_of(const Range& range, const OperationKind& kind);

/// Size bucket of a kernel: "small" below 10 us, "medium" below 100 us, "large".
std::string_view size_bucket(Seconds time);

class ResidualRanges {
 public:
  /// Reads hw/residuals.json of the data folder. A missing file gives unvalidated ranges throughout.
  static ResidualRanges load();
  /// From a table as residual_table writes it. Throws nlohmann::json::exception where it is none.
  static ResidualRanges from(const nlohmann::json& table);

  /// Of published or own steps on one GPU: how many, and the median of their errors in percent.
  struct MeasuredSteps {
    int count = 0;
    double median = 0;
  };
  /// Factors on the time of a step on a machine that nobody here measured; 1 and 1 where no run is known.
  struct UnknownRuns {
    double low = 1, high = 1;
    int publishers = 0;
  };
  [[nodiscard]] const UnknownRuns& unknown_runs() const { return runs_; }
  /// Nothing where no step was measured on it.
  [[nodiscard]] std::optional<MeasuredSteps> steps_on(const std::string& gpu) const;
  /// The largest of each quantity ("gpus", "sequence_length", "micro_batch") among measured steps; 0 where none is.
  [[nodiscard]] double most(const std::string& quantity) const;

 private:
  friend class ChipRanges;
  static constexpr std::size_t kAnySize = 3, kSizes = 4;
  struct Cell {
    double low = 1, high = 1;
    Seconds longest{0};
  };
  using Sizes = std::array<std::optional<Cell>, kSizes>;
  using Cells = std::map<std::string, Sizes, std::less<>>;
  struct MeasuredChip {
    std::string name;
    std::vector<std::string> software;
    std::map<std::string, Cells, std::less<>> kinds, families;  ///< by engine
    std::shared_ptr<Lazy<Gpu>> description = std::make_shared<Lazy<Gpu>>();
    /// Read when it is first asked for: descriptions of all are half the work of a first prediction.
    [[nodiscard]] const Gpu& gpu() const;
  };
  /// Measured of a kind on one of `chips_`.
  struct OnChip {
    bool any = false;               ///< rows of the engine
    const Sizes* kind = nullptr;    ///< null: none
    const Sizes* family = nullptr;  ///< of other operations
    bool other_type = false;        ///< of the operation in other types or by other laws
  };
  /// One a chip. Looked up by names once for each kind.
  [[nodiscard]] std::shared_ptr<const std::vector<OnChip>> on_chips(const OperationKind& kind,
                                                                    std::string_view engine) const;
  /// Kinds that were asked for, of this table: a copy begins with none.
  class KnownKinds {
   public:
    KnownKinds() = default;
    KnownKinds(const KnownKinds&) {}
    KnownKinds& operator=(const KnownKinds&) { return *this = KnownKinds(); }
    KnownKinds(KnownKinds&&) = default;
    KnownKinds& operator=(KnownKinds&&) = default;
    struct Kinds {
      std::mutex mutex;
      std::unordered_map<std::string, std::shared_ptr<const std::vector<OnChip>>> by_key;
    };
    [[nodiscard]] Kinds& get() const { return *kinds_; }

   private:
    std::unique_ptr<Kinds> kinds_ = std::make_unique<Kinds>();
  };

  static Cells cells_of(const nlohmann::json& list);
  std::vector<MeasuredChip> chips_;
  std::map<std::string, Cells, std::less<>> elsewhere_;  ///< families, by engine
  std::map<std::string, MeasuredSteps, std::less<>> steps_;
  std::map<std::string, double, std::less<>> most_;
  UnknownRuns runs_;
  KnownKinds known_;
};

/// The ranges of one GPU under one version of the software: distances are computed once. The references must outlive
/// it. An empty `software` is every version.
class ChipRanges {
 public:
  ChipRanges(const ResidualRanges& ranges, const Gpu& gpu, std::string_view software = {});
  [[nodiscard]] Range of(const OperationKind& kind, Seconds time, std::string_view engine) const;
  /// The measured GPU that is nearest, by all laws of time; null where nothing was measured.
  [[nodiscard]] const Gpu* nearest() const { return nearest_; }
  /// From it: 0 for a measured GPU.
  [[nodiscard]] double distance() const { return distance_; }
  /// This GPU's kernels were measured with this software.
  [[nodiscard]] bool software_measured() const { return software_measured_; }
  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }
  /// It is a GPU of hw/, unchanged.
  [[nodiscard]] bool is_shipped() const;
  [[nodiscard]] const ResidualRanges& table() const { return *ranges_; }

 private:
  static constexpr std::size_t kFamilies = 7;
  struct Near {
    const ResidualRanges::MeasuredChip* chip;
    std::array<double, kFamilies> distance;  ///< by the laws of each family
    double of_time;                          ///< by all of them
  };
  using OnChip = ResidualRanges::OnChip;
  [[nodiscard]] std::optional<Range> on_this_gpu(const OnChip& measured, Seconds time) const;
  [[nodiscard]] Range on_a_stranger(std::span<const OnChip> measured, const OperationKind& kind, Seconds time,
                                    std::string_view engine) const;
  /// All measured GPUs.
  [[nodiscard]] const std::vector<Near>& near() const;
  void look_at(const ResidualRanges::MeasuredChip& chip, double distance, std::string_view software);

  std::shared_ptr<Lazy<std::vector<Near>>> near_ = std::make_shared<Lazy<std::vector<Near>>>();
  std::shared_ptr<Lazy<bool>> shipped_ = std::make_shared<Lazy<bool>>();
  std::optional<std::size_t> own_;  ///< of the measured GPUs, the one that this is
  const ResidualRanges* ranges_;
  const Gpu* gpu_;
  const Gpu* nearest_ = nullptr;
  double distance_ = 0;
  bool software_measured_ = true;
};

}  // namespace ridgeline
