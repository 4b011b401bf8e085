// Low-rank adapters beside frozen linear layers, as PEFT's LoraConfig describes them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/workload/dtype.h"

namespace ridgeline {

/// Linear layers of a block by what they do, and the output projection of a language model.
enum class LinearRole : std::uint8_t { query, key, value, qkv, output, gate, up, down, head };
/// Bits of the roles in blocks, which are PEFT's "all-linear".
inline constexpr std::uint16_t kRolesOfBlocks = 0xff;

inline constexpr std::array<std::pair<std::string_view, LinearRole>, 9> kLinearRoles{{{"query", LinearRole::query},
                                                                                      {"key", LinearRole::key},
                                                                                      {"value", LinearRole::value},
                                                                                      {"qkv", LinearRole::qkv},
                                                                                      {"output", LinearRole::output},
                                                                                      {"gate", LinearRole::gate},
                                                                                      {"up", LinearRole::up},
                                                                                      {"down", LinearRole::down},
                                                                                      {"head", LinearRole::head}}};

/// How the frozen weights of the blocks' linear layers are kept.
enum class FrozenWeights : std::uint8_t {
  as_stored,   ///< in the type of the model
  nf4,         ///< bitsandbytes: four bits, and a scale in fp32 for every 64 numbers
  nf4_double,  ///< its double quantization: a scale in eight bits, and one in fp32 for every 256 of those
  int8,        ///< bitsandbytes' LLM.int8: eight bits, and a scale in fp32 a row
  gptq,        ///< four bits, for every 128 numbers of a row a scale in fp16 and a zero in four bits, and their order
  awq,         ///< the same without an order
  hqq,         ///< four bits, for every 64 numbers a scale and a zero in the model's type
  int8_only,   ///< torchao: eight bits with a scale a row, cast to the type of the input before each product
  int4_only,  ///< torchao: four bits, for every 128 numbers a scale and a zero, which one kernel expands and multiplies
  fp8,        ///< torchao: eight-bit floating point with a scale a row; inputs are cast with a scale a row too
};

struct LoraDescription {
  std::int64_t rank = 8;
  double dropout = 0.0;
  std::uint16_t targets = 0;  ///< a bit a LinearRole; 0: query and value, or qkv where they are one layer
  FrozenWeights frozen = FrozenWeights::as_stored;
  bool dora = false;              ///< a trained magnitude for each output column scales the sum (use_dora)
  bool saves_embeddings = false;  ///< a copy of the token table is trained, the table itself stays (modules_to_save)
  bool saves_head = false;        ///< likewise of the output projection
  DType dtype = DType::fp32;  ///< type in which adapters are kept and trained; fp32 by PEFT's autocast_adapter_dtype

  [[nodiscard]] bool adapts(LinearRole role) const {
    const auto bit = [](LinearRole r) { return 1U << static_cast<unsigned>(r); };
    const unsigned usual = bit(LinearRole::query) | bit(LinearRole::value) | bit(LinearRole::qkv);
    return ((targets == 0 ? usual : targets) & bit(role)) != 0;
  }
  bool operator==(const LoraDescription&) const = default;
};

}  // namespace ridgeline
