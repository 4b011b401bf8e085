// Parameters of a kernel case as JSON writes them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/units/meant_name.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {

/// Reads parameters of one case and remembers which were asked for, so that leftovers can be reported.
class KernelCaseParameters {
 public:
  KernelCaseParameters(std::string op, const nlohmann::json& values) : op_(std::move(op)), values_(values) {}

  std::int64_t size(const char* key) {
    const std::int64_t value = integer(key);
    if (value < 1) throw KernelCaseError(fmt::format("{}: {} must be at least 1, got {}", op_, key, value));
    if (value > kLargest)
      throw KernelCaseError(fmt::format("{}: {} must be at most {}, got {}", op_, key, kLargest, value));
    return value;
  }
  std::int64_t size_or(const char* key, std::int64_t fallback) {
    asked_.insert(key);
    return values_.contains(key) ? size(key) : fallback;
  }
  /// Lengths of one or more sequences; none where the case has no such parameter.
  std::vector<std::int64_t> sizes_or_none(const char* key) {
    asked_.insert(key);
    std::vector<std::int64_t> sizes;
    if (!values_.contains(key)) return sizes;
    const nlohmann::json& list = values_[key];
    const auto refuse = [&] {
      throw KernelCaseError(fmt::format("{}: {} must be a list of 1 to {} whole numbers from 1 to {}, got {}", op_, key,
                                        kMostSequences, kLongest, list.dump()));
    };
    if (!list.is_array() || list.empty() || list.size() > kMostSequences) refuse();
    for (const nlohmann::json& size : list) {
      if (!size.is_number_integer() || size.get<std::int64_t>() < 1 || size.get<std::int64_t>() > kLongest) refuse();
      sizes.push_back(size.get<std::int64_t>());
    }
    return sizes;
  }
  /// One of some words.
  std::string word_or(const char* key, const std::string& fallback, std::initializer_list<const char*> words) {
    asked_.insert(key);
    if (!values_.contains(key)) return fallback;
    for (const char* word : words)
      if (values_[key] == word) return word;
    throw KernelCaseError(
        fmt::format("{}: {} must be {}, got {}", op_, key, fmt::join(words, " or "), values_[key].dump()));
  }
  bool flag_or(const char* key, bool fallback) {
    asked_.insert(key);
    if (!values_.contains(key)) return fallback;
    if (!values_[key].is_boolean())
      throw KernelCaseError(fmt::format("{}: {} must be true or false, got {}", op_, key, values_[key].dump()));
    return values_[key].get<bool>();
  }
  Layout layout() {
    asked_.insert("layout");
    if (!values_.contains("layout")) return Layout::nn;
    const nlohmann::json& value = values_["layout"];
    if (value == "nn") return Layout::nn;
    if (value == "nt") return Layout::nt;
    if (value == "tn") return Layout::tn;
    throw KernelCaseError(fmt::format("{}: layout must be nn, nt or tn, got {}", op_, value.dump()));
  }
  /// `sparsity`: "2:4" of the operand that `sparse_operand` names, the weights x·Wᵀ multiplies by where it does not.
  SparseOperand sparse() {
    asked_.insert({"sparsity", "sparse_operand"});
    if (!values_.contains("sparsity") || values_["sparsity"] == "none") {
      if (values_.contains("sparse_operand"))
        throw KernelCaseError(fmt::format("{}: sparse_operand needs \"sparsity\":\"2:4\"", op_));
      return SparseOperand::none;
    }
    if (values_["sparsity"] != "2:4")
      throw KernelCaseError(
          fmt::format("{}: sparsity must be \"2:4\" or \"none\", got {}", op_, values_["sparsity"].dump()));
    const nlohmann::json operand = values_.contains("sparse_operand") ? values_["sparse_operand"] : nlohmann::json("b");
    if (operand == "a") return SparseOperand::a;
    if (operand == "b") return SparseOperand::b;
    throw KernelCaseError(fmt::format("{}: sparse_operand must be \"a\" or \"b\", got {}", op_, operand.dump()));
  }
  [[nodiscard]] const std::string& op() const { return op_; }
  void reject_leftovers() const {
    for (const auto& [key, value] : values_.items()) {
      if (!asked_.contains(key))
        throw KernelCaseError(fmt::format("{}: unknown parameter {} ({})", op_, key, expected_names(key, asked_)));
    }
  }
  /// A tensor of more elements than a device could hold is a mistake, and would overflow byte counts.
  std::int64_t checked(std::initializer_list<std::int64_t> dims) const {
    double product = 1.0;
    for (const std::int64_t d : dims) product *= static_cast<double>(d);
    return checked(product);
  }
  std::int64_t checked(double product) const {
    if (product > 1e13)
      throw KernelCaseError(fmt::format("{}: a tensor of {:.3g} elements is too large for any GPU", op_, product));
    return static_cast<std::int64_t>(product);
  }

 private:
  static constexpr std::size_t kMostSequences = 65536;
  static constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  static constexpr std::int64_t kLargest = std::int64_t{1} << 42;

  std::int64_t integer(const char* key) {
    asked_.insert(key);
    if (!values_.contains(key))
      throw KernelCaseError(fmt::format("{}: parameter {} is missing{}", op_, key,
                                        values_.empty() ? ", as all are: they stand in an object \"params\"" : ""));
    const nlohmann::json& value = values_[key];
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float() && std::isfinite(value.get<double>()) &&
        std::floor(value.get<double>()) == value.get<double>() && std::abs(value.get<double>()) < 1e18)
      return static_cast<std::int64_t>(value.get<double>());
    throw KernelCaseError(fmt::format("{}: {} must be a whole number, got {}", op_, key, value.dump()));
  }

  std::string op_;
  const nlohmann::json& values_;
  std::set<std::string> asked_;
};

}  // namespace ridgeline
