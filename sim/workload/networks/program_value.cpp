#include "sim/workload/networks/program_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridgeline::networks {

std::string kind_of(const ProgramValue& value) {
  constexpr const char* kNames[] = {"None",     "a whole number", "a number", "True or False", "a text",
                                    "a tensor", "a list",         "a module", "nothing yet"};
  return kNames[value.index()];
}

bool is_true(const ProgramValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole != 0;
  if (const auto* real = std::get_if<double>(&value)) return *real != 0.0;
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  if (const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&value)) return !(*list)->items.empty();
  return !std::holds_alternative<std::monostate>(value);
}

std::string text_of(const Dims& sizes) {
  std::string text = "[";
  for (int i = 0; i < sizes.rank(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", sizes[i]);
  return text + "]";
}

CallArguments::CallArguments(const NetworkProgram& program, const Expression& call, std::string_view parameters,
                             std::vector<ProgramValue>& values)
    : program_(program), call_(call), parameters_(parameters), values_(values) {
  std::vector<bool> optional;
  for (std::size_t from = 0; from < parameters.size();) {
    const std::size_t end = std::min(parameters.find(", ", from), parameters.size());
    std::string_view one = parameters.substr(from, end - from);
    const bool rest = one.starts_with('*');
    if (rest) one.remove_prefix(1);
    const std::size_t equal = one.find('=');
    optional.push_back(equal != std::string_view::npos);
    bound_.push_back({one.substr(0, equal), -1, rest});
    from = end + 2;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string& keyword = call.keywords[i];
    const bool rest = !bound_.empty() && bound_.back().rest && i + 1 >= bound_.size();
    std::size_t at = rest ? bound_.size() - 1 : i;
    if (!keyword.empty())
      at = static_cast<std::size_t>(
          std::find_if(bound_.begin(), bound_.end(), [&](const Parameter& p) { return p.name == keyword; }) -
          bound_.begin());
    if (at >= bound_.size())
      fail(keyword.empty() ? fmt::format("{} arguments; it takes ({})", values.size(), parameters)
                           : fmt::format("no argument '{}'; it takes ({})", keyword, parameters));
    if (bound_[at].value < 0) bound_[at].value = static_cast<int>(i);
    else if (!bound_[at].rest || !keyword.empty()) fail(fmt::format("'{}' twice", bound_[at].name));
  }
  for (std::size_t i = 0; i < bound_.size(); ++i)
    if (bound_[i].value < 0 && !optional[i])
      fail(fmt::format("'{}' is missing; it takes ({})", bound_[i].name, parameters));
}

void CallArguments::fail(const std::string& message) const {
  program_.fail(call_.items[0].place, fmt::format("{}: {}", call_.items[0].text, message));
}

void CallArguments::fail_type(std::string_view name, std::string_view expected) const {
  fail(fmt::format("'{}' is {}; expected {}", name, kind_of(value(name)), expected));
}

int CallArguments::index_of(std::string_view name) const {
  for (const Parameter& parameter : bound_)
    if (parameter.name == name) return parameter.value;
  return -1;
}

bool CallArguments::given(std::string_view name) const {
  const int index = index_of(name);
  return index >= 0 && !std::holds_alternative<std::monostate>(values_[static_cast<std::size_t>(index)]);
}

const ProgramValue& CallArguments::value(std::string_view name) const {
  return values_[static_cast<std::size_t>(std::max(0, index_of(name)))];
}

const Tensor& CallArguments::tensor(std::string_view name) const {
  const auto* tensor = std::get_if<Tensor>(&value(name));
  if (tensor == nullptr) fail_type(name, "a tensor");
  if (!tensor->defined()) fail(fmt::format("'{}' was given up by del", name));
  return *tensor;
}

Tensor CallArguments::tensor_or_none(std::string_view name) const { return given(name) ? tensor(name) : Tensor{}; }

std::int64_t CallArguments::whole(std::string_view name) const {
  const auto* whole = std::get_if<std::int64_t>(&value(name));
  if (whole == nullptr) fail_type(name, "a whole number");
  return *whole;
}

std::int64_t CallArguments::count(std::string_view name) const {
  const std::int64_t given = whole(name);
  constexpr std::int64_t kMost = std::int64_t{1} << 36;
  if (given < 1 || given > kMost) fail(fmt::format("'{}' is {}; expected 1 to {}", name, given, kMost));
  return given;
}

double CallArguments::real(std::string_view name) const {
  if (const auto* whole = std::get_if<std::int64_t>(&value(name))) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value(name));
  if (real == nullptr) fail_type(name, "a number");
  return *real;
}

bool CallArguments::flag(std::string_view name, bool otherwise) const {
  if (!given(name)) return otherwise;
  const auto* flag = std::get_if<bool>(&value(name));
  if (flag == nullptr) fail_type(name, "True or False");
  return *flag;
}

std::string CallArguments::text(std::string_view name, std::string otherwise) const {
  if (!given(name)) return otherwise;
  const auto* text = std::get_if<std::string>(&value(name));
  if (text == nullptr) fail_type(name, "a text in quotes");
  return *text;
}

std::vector<std::int64_t> CallArguments::wholes(std::string_view name) const {
  std::vector<std::int64_t> result;
  const auto take = [&](const ProgramValue& one) {
    const auto* whole = std::get_if<std::int64_t>(&one);
    if (whole == nullptr) fail(fmt::format("'{}' has {} in it; expected whole numbers", name, kind_of(one)));
    result.push_back(*whole);
  };
  const auto first = static_cast<std::size_t>(std::max(0, index_of(name)));
  if (const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&values_[first])) {
    for (const ProgramValue& one : (*list)->items) take(one);
    return result;
  }
  const bool rest = bound_.back().rest && bound_.back().name == name;
  for (std::size_t i = first; i < (rest ? values_.size() : first + 1); ++i) take(values_[i]);
  return result;
}

Dims CallArguments::dims(std::string_view name) const {
  const std::vector<std::int64_t> sizes = wholes(name);
  if (sizes.size() > Dims::kMost) fail(fmt::format("{} dimensions; tensors have up to {}", sizes.size(), Dims::kMost));
  Dims result;
  double elements = 1.0;
  for (const std::int64_t size : sizes) {
    if (size < -1) fail(fmt::format("a dimension of {}", size));
    elements *= static_cast<double>(size);
    result.push_back(size);
  }
  constexpr double kMost = 1e13;
  if (std::abs(elements) > kMost) fail("a tensor of more than 10,000,000,000,000 elements");
  return result;
}

std::vector<Tensor> CallArguments::tensors(std::string_view name) const {
  std::vector<Tensor> result;
  const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&value(name));
  if (list == nullptr) fail_type(name, "a list of tensors");
  for (const ProgramValue& one : (*list)->items) {
    const auto* tensor = std::get_if<Tensor>(&one);
    if (tensor == nullptr) fail(fmt::format("'{}' has {} in it; expected tensors", name, kind_of(one)));
    result.push_back(*tensor);
  }
  return result;
}

int CallArguments::dimension(std::string_view name, const Tensor& x, std::int64_t otherwise) const {
  const std::int64_t given = whole(name, otherwise), rank = x.sizes.rank(), at = given < 0 ? given + rank : given;
  if (at < 0 || at >= rank) fail(fmt::format("dimension {} of a tensor {}", given, text_of(x.sizes)));
  return static_cast<int>(at);
}

}  // namespace ridgeline::networks
