// The measurements that constants are fitted on and predictions are compared with: measurements/index.yaml lists every
// file with its machine and with what of it a fit may see. measurements/README.md describes the rows.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

/// What of a file a fit may see.
enum class Split {
  fit,       ///< all
  held_out,  ///< nothing
  by_row,    ///< each row says (`heldout`)
  by_shape,  ///< two thirds of the shapes, by their hash
};

/// A machine that measured, as index.yaml describes it.
struct MeasuringMachine {
  std::string name, hardware, software;  ///< files of hw/ and hw/software, or "rows": each row says its own
  std::string host;                      ///< file of hw/hosts
  std::string stack, clocks;             ///< in words: versions; whether clocks were locked, and what they were
  int graph_of = 0;  ///< ops timed from one launch of their CUDA graph to the next; 0: kernels alone
};

struct MeasuredFile {
  std::string name;  ///< within the folder: "h200/random/fit.jsonl.gz"
  std::filesystem::path path;
  std::string kind;  ///< what its rows are: "kernels", "steps" ...
  MeasuringMachine machine;
  Split split = Split::held_out;
  std::string seen_by;              ///< which fit saw its rows, in words; none where empty
  bool unusual_shapes = false;      ///< small ops, odd sides and head sizes, convolutions of any shape
  bool attention_on_views = false;  ///< operands of attention were views of [batch, seq, heads, head_dim]
};

class MeasurementIndex {
 public:
  /// Reads FOLDER/index.yaml. Throws config::ConfigError for an unknown key, split or machine, and for a path that is
  /// no file.
  explicit MeasurementIndex(const std::filesystem::path& folder);

  [[nodiscard]] const std::vector<MeasuredFile>& files() const { return files_; }
  [[nodiscard]] std::vector<const MeasuredFile*> of_kind(std::string_view kind) const;
  /// Throws UserError when the index does not list it.
  [[nodiscard]] const MeasuredFile& file(std::string_view name) const;

 private:
  std::filesystem::path folder_;
  std::vector<MeasuredFile> files_;
};

/// The rows of a file of JSON lines. Throws UserError with the line's number for text that is no JSON.
void for_each_row(const MeasuredFile& file, const std::function<void(const nlohmann::json& row)>& use);

}  // namespace ridgeline
