// Values that a program works on: numbers, texts, tensors, lists of them, and modules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/eager/tensor.h"
#include "sim/workload/families/functional.h"
#include "sim/workload/networks/network_program.h"

namespace ridgeline::networks {

using eager::Dims;
using eager::Tensor;

struct ProgramList;
struct ProgramModule;
struct ModuleKind;
class ExpertModule;

/// Of a variable that was not assigned yet, or deleted.
struct NoValue {};
using ProgramValue = std::variant<std::monostate, std::int64_t, double, bool, std::string, Tensor,
                                  std::shared_ptr<ProgramList>, ProgramModule*, NoValue>;

struct ProgramList {
  std::vector<ProgramValue> items;
};

/// A module that was made: one with parameters, a block with modules of its own, or a list of blocks.
struct ProgramModule {
  std::string name;
  const ModuleKind* kind = nullptr;     ///< null: a block or a list
  const ProgramBlock* block = nullptr;  ///< null: a list, or a kind
  families::Affine weights;
  std::shared_ptr<ExpertModule> experts;
  std::vector<Tensor> buffers;
  std::vector<std::int64_t> numbers;                  ///< of a kind: strides, groups, …
  std::vector<ProgramValue> sizes;                    ///< of a block, behind the star
  std::vector<std::unique_ptr<ProgramModule>> parts;  ///< of a block in the order of its modules, or of a list
  std::int64_t number = -1;                           ///< in a list
  std::int16_t layer = -1;                            ///< number of a block that is wrapped and checkpointed
};

/// "a tensor", "a number", …, for messages.
std::string kind_of(const ProgramValue& value);
bool is_true(const ProgramValue& value);
std::string text_of(const Dims& sizes);

/// Arguments of one call, by the names of its parameters.
class CallArguments {
 public:
  /// `parameters`: "x, width, bias=True", a star before the last takes the rest. Throws config::ConfigError at
  /// arguments that are no parameters, twice there or missing.
  CallArguments(const NetworkProgram& program, const Expression& call, std::string_view parameters,
                std::vector<ProgramValue>& values);

  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] const Tensor& tensor(std::string_view name) const;
  /// Undefined where it was left out or is None.
  [[nodiscard]] Tensor tensor_or_none(std::string_view name) const;
  [[nodiscard]] std::int64_t whole(std::string_view name) const;
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise) const {
    return given(name) ? whole(name) : otherwise;
  }
  /// At least 1, and no more than any tensor has.
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t otherwise) const {
    return given(name) ? count(name) : otherwise;
  }
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise) const;
  /// A list of numbers, or all numbers from this parameter on.
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view name) const;
  [[nodiscard]] Dims dims(std::string_view name) const;
  [[nodiscard]] std::vector<Tensor> tensors(std::string_view name) const;
  /// A dimension of x, counted from the end where it is negative.
  [[nodiscard]] int dimension(std::string_view name, const Tensor& x, std::int64_t otherwise) const;
  [[nodiscard]] const ProgramValue& value(std::string_view name) const;

  [[noreturn]] void fail(const std::string& message) const;
  void require(bool holds, const std::string& message) const {
    if (!holds) fail(message);
  }

 private:
  [[nodiscard]] int index_of(std::string_view name) const;
  [[noreturn]] void fail_type(std::string_view name, std::string_view expected) const;

  const NetworkProgram& program_;
  const Expression& call_;
  std::string_view parameters_;
  std::vector<ProgramValue>& values_;
  struct Parameter {
    std::string_view name;
    int value = -1;
    bool rest = false;
  };
  std::vector<Parameter> bound_;
};

}  // namespace ridgeline::networks
