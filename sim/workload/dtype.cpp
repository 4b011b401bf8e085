#include "sim/workload/dtype.h"

namespace ridgeline {

std::string_view name_of(DType type) {
  switch (type) {
    case DType::fp32: return "fp32";
    case DType::tf32: return "tf32";
    case DType::bf16: return "bf16";
    case DType::fp16: return "fp16";
    case DType::fp64: return "fp64";
    case DType::int64: return "int64";
    case DType::int32: return "int32";
    case DType::uint8: return "uint8";
    case DType::boolean: return "bool";
  }
  return "?";
}

std::optional<DType> dtype_from(std::string_view name) {
  for (const DType type : {DType::fp32, DType::tf32, DType::bf16, DType::fp16, DType::fp64, DType::int64, DType::int32,
                           DType::uint8, DType::boolean})
    if (name_of(type) == name) return type;
  return std::nullopt;
}

}  // namespace ridgeline
