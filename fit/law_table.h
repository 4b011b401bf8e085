// A table of fitted constants as data/laws/TABLE.yaml holds it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline::fit {

/// Constants of one class of kernels, by name.
using Values = std::map<std::string, double, std::less<>>;

struct Errors {
  std::size_t kernels = 0;
  double median = 0, mean = 0;  ///< percent
};

/// What a fit leaves beside its constants.
struct FitRecord {
  Errors in_sample{}, cross_validated{}, held_out{};
  double loss = 0;
  std::map<std::string, double> machines{};  ///< how much slower than the first, percent
  std::string data{};                        ///< hash of the rows that were fitted
};

struct LawConstant {
  std::string name{};
  double value = 0;
  std::string text{};          ///< as the file writes it
  std::optional<double> sd{};  ///< percent of the value
  std::string note{};          ///< "at its bound", "frozen", ...; empty for others
};

struct LawClass {
  std::string name{}, about{};
  std::optional<FitRecord> fit{};
  std::string numbers{};  ///< hash of the constants as written; empty before the first fit
  std::vector<LawConstant> constants{};
  [[nodiscard]] Values values() const;
  /// Hash of names and numbers.
  [[nodiscard]] std::string hash() const;
};

struct LawTable {
  std::string comment{};  ///< lines at its head
  std::string name{}, type{}, header{};
  std::vector<std::pair<std::string, std::string>> units{};
  std::vector<LawClass> classes{};
  [[nodiscard]] LawClass* find(std::string_view name_of_class);
};

/// Throws UserError.
LawTable read_table(const std::filesystem::path& path);
void write_table(const LawTable& table, const std::filesystem::path& path);

/// `value` to four digits, as tables write it.
std::string constant_text(double value);

}  // namespace ridgeline::fit
