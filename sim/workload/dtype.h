// Element types of tensors, as PyTorch names them. tf32 is fp32 in memory and tf32 in the tensor cores.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ridgeline {

enum class DType : std::uint8_t { fp32, tf32, bf16, fp16, fp64, int64, int32, uint8, boolean };

constexpr std::int64_t bytes_of(DType type) {
  switch (type) {
    case DType::fp64:
    case DType::int64: return 8;
    case DType::fp32:
    case DType::tf32:
    case DType::int32: return 4;
    case DType::bf16:
    case DType::fp16: return 2;
    case DType::uint8:
    case DType::boolean: return 1;
  }
  return 4;
}
constexpr bool is_half(DType type) { return type == DType::bf16 || type == DType::fp16; }

std::string_view name_of(DType type);
std::optional<DType> dtype_from(std::string_view name);

}  // namespace ridgeline
