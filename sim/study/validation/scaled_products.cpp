#include "sim/study/validation/scaled_products.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ridgeline {

std::vector<MeasuredOp> load_scaled_products(const MeasuredFile& file) {
  std::vector<MeasuredOp> result;
  std::size_t line = 0;
  for_each_row(file, [&](const nlohmann::json& row) {
    ++line;
    const std::string mode = row["mode"];
    if (mode != "tensor_fast" && mode != "tensor" && mode != "row_fast") return;
    const nlohmann::json given{{"op", "scaled_mm"},
                               {"dtype", "bf16"},
                               {"params",
                                {{"m", row["m"]},
                                 {"n", row["n"]},
                                 {"k", row["k"]},
                                 {"scales", mode == "row_fast" ? "rows" : "tensor"},
                                 {"fast_accum", mode != "tensor"}}}};
    MeasuredOp item{.op = "scaled_mm",
                    .dtype = "bf16",
                    .time = microseconds(row["us"].get<double>()),
                    .file = &file,
                    .line = line,
                    .held_out = row["heldout"].get<bool>(),
                    .shape = hash_of(given.dump()),
                    .row = hash_of(row.dump())};
    try {
      item.kernel = kernel_case_from(given);
    } catch (const KernelCaseError& e) {
      throw UserError(fmt::format("{}:{}: {}", file.path.string(), line, e.what()));
    }
    for (const nlohmann::json& kernel : row["kernels"])
      item.kernels.push_back({.name = kernel["name"], .seconds = kernel["us"].get<double>() * 1e-6});
    result.push_back(std::move(item));
  });
  return result;
}

}  // namespace ridgeline
