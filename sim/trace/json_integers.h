// Lists of whole numbers in JSON: the shapes and strides of recorded tensors.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <vector>

namespace ridgeline::trace {

/// Appends the numbers of `value`; false, with some of them appended, where it is no list of whole numbers.
inline bool integers_of(const simdjson::dom::element& value, std::vector<std::int64_t>& into) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::element item : list) {
    std::int64_t number = 0;
    if (item.get(number) != simdjson::SUCCESS) return false;
    into.push_back(number);
  }
  return true;
}

}  // namespace ridgeline::trace
