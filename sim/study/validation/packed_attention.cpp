#include "sim/study/validation/packed_attention.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ridgeline {

std::vector<MeasuredOp> load_packed_attention(const MeasuredFile& file) {
  std::vector<MeasuredOp> result;
  std::size_t line = 0;
  for_each_row(file, [&](const nlohmann::json& row) {
    ++line;
    for (const bool backward : {false, true}) {
      const nlohmann::json given{{"op", backward ? "flash_attention_backward" : "flash_attention"},
                                 {"dtype", "bf16"},
                                 {"params",
                                  {{"batch", 1},
                                   {"heads", row["heads"]},
                                   {"kv_heads", row["kv_heads"]},
                                   {"lengths", row["lengths"]},
                                   {"head_dim", row["head_dim"]},
                                   {"causal", row["causal"]}}}};
      MeasuredOp item{.op = given["op"],
                      .dtype = "bf16",
                      .time = microseconds(row[backward ? "backward_us" : "forward_us"].get<double>()),
                      .file = &file,
                      .line = line,
                      .held_out = row["heldout"].get<bool>()};
      item.shape = item.row = hash_of(given.dump());
      try {
        item.kernel = kernel_case_from(given);
      } catch (const KernelCaseError& e) {
        throw UserError(fmt::format("{}:{}: {}", file.path.string(), line, e.what()));
      }
      for (const nlohmann::json& kernel : row[backward ? "backward_kernels" : "forward_kernels"])
        item.kernels.push_back({.name = kernel["name"], .seconds = kernel["us"].get<double>() * 1e-6});
      item.row = hash_of(row.dump(), item.row);
      result.push_back(std::move(item));
    }
  });
  return result;
}

}  // namespace ridgeline
