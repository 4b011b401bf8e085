#include "sim/workload/kernel_case.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/config/other_words.h"
#include "sim/units/meant_name.h"
#include "sim/units/word_list.h"
#include "sim/workload/convolution_bounds.h"
#include "sim/workload/kernel_case_parameters.h"
#include "sim/workload/op_fields.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline {
namespace {

constexpr const char* kAnExample =
    "op is missing: a kernel case is a JSON object, "
    "{\"op\":\"mm\",\"dtype\":\"bf16\",\"params\":{\"m\":4096,\"n\":4096,\"k\":4096,"
    "\"layout\":\"nt\"}} (docs/kernel-cases.md)";

using nlohmann::json;
using Parameters = KernelCaseParameters;

using OpBuilder = std::function<Op(Parameters&, DType)>;

Matmul matmul(Parameters& p, DType type, bool batched, bool bias) {
  Matmul op{.type = type, .batch = batched ? p.size("b") : 1, .m = p.size("m"), .n = p.size("n"), .k = p.size("k")};
  op.layout = bias ? Layout::nt : p.layout();
  if (bias && p.size_or("b", 1) != 1) throw KernelCaseError("addmm: b must be 1");
  if (bias) {
    const Layout given = p.layout();  // x·Wᵀ is what addmm means; "nt" may be spelt out
    if (given == Layout::tn) throw KernelCaseError("addmm: layout must be nt");
  }
  op.bias = bias;
  op.sparse = p.sparse();
  p.checked({op.batch, op.m, op.k});
  p.checked({op.batch, op.k, op.n});
  p.checked({op.batch, op.m, op.n});
  return op;
}

Matmul scaled_mm(Parameters& p, DType type) {
  Matmul op{.type = type, .m = p.size("m"), .n = p.size("n"), .k = p.size("k"), .layout = Layout::nt};
  const bool rows = p.word_or("scales", "tensor", {"tensor", "rows"}) == "rows", fast = p.flag_or("fast_accum", true);
  if (rows && !fast) throw KernelCaseError(p.op() + ": scales of rows go with fast_accum true");
  if (!is_half(type)) throw KernelCaseError(p.op() + ": dtype is that of the result: bf16 or fp16");
  if (op.n % 16 != 0 || op.k % 16 != 0)
    throw KernelCaseError(fmt::format("{}: n and k must be multiples of 16, got {} and {}", p.op(), op.n, op.k));
  op.scaling = rows ? Scaling::rows_fast : fast ? Scaling::tensor_fast : Scaling::tensor;
  p.checked({op.m, op.k});
  p.checked({op.k, op.n});
  p.checked({op.m, op.n});
  return op;
}

struct Shape {
  std::int64_t rows, cols;
};
Shape rows_cols(Parameters& p) {
  const Shape s{p.size("rows"), p.size("cols")};
  p.checked({s.rows, s.cols});
  return s;
}

/// A case whose parameters are fields of its operation: "rows cols", "vocab=vocabulary" where the names differ.
/// `tensors` are products of parameters that must be possible: "tokens hidden, vocab hidden". Types are that of the
/// case.
struct CaseRow {
  std::string_view name;
  Op op;
  std::string_view parameters = "rows cols", tensors = "rows cols";
};

/// Sets the fields that are parameters, and all types.
struct CaseFields {
  Parameters& p;
  DType type;
  std::string_view parameters;
  std::map<std::string_view, std::int64_t> sizes{};

  void operator()(std::string_view, DType& value) { value = type; }
  void operator()(std::string_view field, std::int64_t& value) {
    for_each_word(parameters, " ", [&](std::string_view parameter) {
      const std::string_view name = parameter.substr(0, parameter.find('='));
      if (parameter.substr(parameter.size() == name.size() ? 0 : name.size() + 1) == field)
        value = sizes[name] = p.size(std::string(name).c_str());
    });
  }
  void operator()(std::string_view, auto&) {}
  void unless(std::string_view field, auto& value, const auto&) { (*this)(field, value); }
};

OpBuilder by_fields(const CaseRow& row) {
  return [row](Parameters& p, DType type) {
    Op op = row.op;
    CaseFields reader{p, type, row.parameters};
    for_each_field(op, reader);
    for_each_word(row.tensors, ", ", [&](std::string_view tensor) {
      double elements = 1.0;
      for_each_word(tensor, " ",
                    [&](std::string_view side) { elements *= static_cast<double>(reader.sizes.at(side)); });
      p.checked(elements);
    });
    return op;
  };
}
OpBuilder pointwise(const PointwiseRow& row) {
  const Pointwise op{.function = pointwise_function(row.key), .input_count = static_cast<std::uint8_t>(row.tensors)};
  if (!row.masks) return by_fields({row.key, op});
  return [plain = by_fields({row.key, op})](Parameters& p, DType type) {
    Op masked = plain(p, type);
    auto& fields = std::get<Pointwise>(masked);
    fields.inputs[fields.input_count - 1] = DType::boolean;
    return masked;
  };
}

const std::vector<CaseRow>& case_rows() {
  using F = PointwiseFunction;
  constexpr std::string_view kTable = "tokens vocab=vocabulary hidden", kTables = "tokens hidden, vocab hidden";
  static const std::vector<CaseRow> rows{
      {"softmax", Softmax{}},
      {"softmax_backward", Softmax{.backward = true}},
      {"log_softmax", Softmax{.log = true}},
      {"log_softmax_backward", Softmax{.log = true, .backward = true}},
      {"layer_norm", Norm{}},
      {"layer_norm_backward", Norm{.backward = true}},
      {"mean_last", Reduction{.kind = ReductionKind::mean_cols}},
      {"sum_rows", Reduction{.kind = ReductionKind::sum_rows}},
      {"sum_all", Reduction{.kind = ReductionKind::sum_all, .rows = 1}, "elements=cols", "elements"},
      {"add_broadcast", Pointwise{.function = F::add, .input_count = 2, .walk = Walk::broadcast_row}},
      {"fill", Pointwise{.function = F::fill, .rows = 1, .input_count = 0}, "elements=cols", "elements"},
      {"scale", Pointwise{.function = F::scale, .rows = 1}, "elements=cols", "elements"},
      {"copy", Copy{.rows = 1}, "elements=cols", "elements"},
      {"copy_transposed", Copy{.kind = CopyKind::transpose}, "rows=cols cols=rows"},  // of the matrix that is read
      {"cat", Copy{.kind = CopyKind::concatenate, .parts = 3}},
      {"embedding", Embedding{}, kTable, kTables},
      {"embedding_backward", Embedding{.backward = true}, kTable, kTables},
      {"index_put", Embedding{.backward = true, .accumulates = true}, kTable, kTables}};
  return rows;
}

OpBuilder multi_tensor(MultiTensorFunction function) {
  return [=](Parameters& p, DType type) -> Op {
    std::int64_t tensors = p.size_or("tensors", 1);
    const std::int64_t elements = p.size("elements");
    if (tensors > 100000) throw KernelCaseError("tensors must be at most 100000");
    p.checked({tensors, elements});
    return MultiTensor{function, type,
                       std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(tensors), elements), false};
  };
}
OpBuilder attention(AttentionBackend backend, bool backward) {
  return [=](Parameters& p, DType type) -> Op {
    Attention op{.backend = backend, .backward = backward, .type = type};
    op.batch = p.size("batch");
    op.heads = p.size("heads");
    op.kv_heads = p.size_or("kv_heads", op.heads);
    if (op.heads % op.kv_heads != 0)
      throw KernelCaseError(fmt::format("{}: kv_heads must divide heads, got {} of {}", p.op(), op.kv_heads, op.heads));
    const std::vector<std::int64_t> lengths =
        backend == AttentionBackend::flash ? p.sizes_or_none("lengths") : std::vector<std::int64_t>{};
    if (lengths.empty()) {
      op.seq_q = p.size("seq");
    } else {
      op.seq_q = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
      if (const std::int64_t given = p.size_or("seq", op.seq_q); given != op.seq_q)
        throw KernelCaseError(
            fmt::format("{}: lengths add up to {}, seq is {}: leave it out, or say the same", p.op(), op.seq_q, given));
      op.lengths.list = std::make_shared<const std::vector<std::int64_t>>(lengths);
    }
    op.seq_k = op.seq_q;
    op.head_dim = p.size("head_dim");
    op.causal = p.flag_or("causal", false);
    // FlashAttention is measured on contiguous [batch, heads, seq, head_dim] tensors unless the case says otherwise.
    if (backend == AttentionBackend::flash) op.head_major = p.flag_or("head_major", !op.lengths.any());
    if (op.head_major && op.lengths.any())
      throw KernelCaseError(p.op() + ": packed sequences lie as [tokens, heads, head_dim]: head_major must be false");
    p.checked({op.batch, op.heads, op.seq_q, op.head_dim});
    if (backend != AttentionBackend::efficient && !is_half(type))
      throw KernelCaseError("flash and cuDNN attention exist for fp16 and bf16 only; efficient_attention takes fp32");
    return op;
  };
}
/// Groups, widths of their own, outputs of other padding, one gradient of two.
void add_sides(Parameters& p, Convolution& op) {
  const auto unless_as = [&](const char* name, std::int64_t height) {
    const std::int64_t given = p.size_or(name, height);
    return given == height ? 0 : given;
  };
  op.groups = p.size_or("groups", 1);
  op.width = unless_as("width", op.size);
  op.kernel_width = unless_as("kernel_width", op.kernel);
  op.stride_width = unless_as("stride_width", op.stride);
  if (!out_of_bounds(op).empty()) return;  // told by the caller
  const std::int64_t rows = p.size_or("out_size", op.out_rows()), columns = p.size_or("out_width", op.out_columns());
  if (rows != op.out_rows() || columns != op.out_columns()) op.out_size = rows, op.out_width = columns;
  op.transposed = p.flag_or("transposed", false);
  if (!op.backward) return;
  const std::string gradients = p.word_or("gradients", "both", {"both", "input", "weight"});
  op.gradients = gradients == "input"    ? ConvolutionGradients::input
                 : gradients == "weight" ? ConvolutionGradients::weight
                                         : ConvolutionGradients::both;
}
OpBuilder convolution(bool backward) {
  return [=](Parameters& p, DType type) -> Op {
    Convolution op{.backward = backward, .type = type};
    op.batch = p.size("batch");
    op.in_channels = p.size("in_channels");
    op.size = p.size("size");
    op.out_channels = p.size("out_channels");
    op.kernel = p.size("kernel");
    op.stride = p.size_or("stride", 1);
    op.channels_last = p.flag_or("channels_last", false);
    add_sides(p, op);
    if (const std::string why = out_of_bounds(op); !why.empty()) throw KernelCaseError(p.op() + ": " + why);
    return op;
  };
}
OpBuilder image(ImageFunction function, bool backward = false) {
  return [=](Parameters& p, DType type) -> Op {
    ImageOp op{.function = function,
               .backward = backward,
               .type = type,
               .batch = p.size("batch"),
               .channels = p.size("channels"),
               .size = p.size("size")};
    op.channels_last = p.flag_or("channels_last", false);
    if (const std::int64_t width = p.size_or("width", op.size); width != op.size) op.width = width;
    p.checked({op.batch, op.channels, op.size, op.columns()});
    if (function == ImageFunction::batch_norm) op.evaluation = p.flag_or("evaluation", false);
    if (function != ImageFunction::max_pool2d && function != ImageFunction::avg_pool2d) return op;
    op.window = p.size_or("window", 2);
    op.stride = p.size_or("stride", op.window);
    op.out_size = p.size_or("out_size", std::max<std::int64_t>(1, op.size / op.stride));
    op.out_width = p.size_or("out_width", std::max<std::int64_t>(1, op.columns() / op.stride));
    p.checked({op.batch, op.channels, op.out_size, op.out_width});
    p.checked({op.window, op.window});
    return op;
  };
}

using Builders = std::map<std::string, OpBuilder, std::less<>>;

/// Cases that are more than fields.
Builders special_builders() {
  using M = MultiTensorFunction;
  return {
      {"mm", [](Parameters& p, DType t) -> Op { return matmul(p, t, false, false); }},
      {"addmm", [](Parameters& p, DType t) -> Op { return matmul(p, t, false, true); }},
      {"bmm", [](Parameters& p, DType t) -> Op { return matmul(p, t, true, false); }},
      {"grouped_mm",
       [](Parameters& p, DType t) -> Op {
         Matmul op = matmul(p, t, true, false);
         op.grouped = true;
         return op;
       }},
      {"scaled_mm", scaled_mm},
      {"dropout",
       [](Parameters& p, DType t) -> Op {
         const Shape s = rows_cols(p);
         return Dropout{t, s.rows * s.cols};
       }},
      {"cast",
       [](Parameters& p, DType t) -> Op {
         const Shape s = rows_cols(p);
         // A 16-bit case casts up to fp32, an fp32 case down to bf16.
         Pointwise op{.function = PointwiseFunction::cast,
                      .rows = s.rows,
                      .cols = s.cols,
                      .input_count = 1,
                      .output = is_half(t) ? DType::fp32 : DType::bf16};
         op.inputs[0] = t;
         return op;
       }},
      {"fused_adamw", multi_tensor(M::fused_adamw)},
      {"foreach_add", multi_tensor(M::add)},
      {"foreach_mul", multi_tensor(M::mul)},
      {"foreach_lerp", multi_tensor(M::lerp)},
      {"foreach_addcmul", multi_tensor(M::addcmul)},
      {"foreach_addcdiv", multi_tensor(M::addcdiv)},
      {"foreach_sqrt", multi_tensor(M::square_root)},
      {"foreach_norm", multi_tensor(M::norm)},
      {"flash_attention", attention(AttentionBackend::flash, false)},
      {"flash_attention_backward", attention(AttentionBackend::flash, true)},
      {"cudnn_attention", attention(AttentionBackend::cudnn, false)},
      {"cudnn_attention_backward", attention(AttentionBackend::cudnn, true)},
      {"efficient_attention", attention(AttentionBackend::efficient, false)},
      {"efficient_attention_backward", attention(AttentionBackend::efficient, true)},
      {"conv2d", convolution(false)},
      {"conv2d_backward", convolution(true)},
      {"batch_norm", image(ImageFunction::batch_norm)},
      {"batch_norm_backward", image(ImageFunction::batch_norm, true)},
      {"relu", image(ImageFunction::relu)},
      {"max_pool2d", image(ImageFunction::max_pool2d)},
      {"max_pool2d_backward", image(ImageFunction::max_pool2d, true)},
      {"avg_pool2d", image(ImageFunction::avg_pool2d)},
      {"avg_pool2d_backward", image(ImageFunction::avg_pool2d, true)},
      {"upsample_nearest2d", image(ImageFunction::upsample_nearest2d)},
  };
}

const Builders& builders() {
  static const Builders table = [] {
    Builders all = special_builders();
    for (const CaseRow& row : case_rows()) all.emplace(row.name, by_fields(row));
    for (const PointwiseRow& row : pointwise_rows())
      if (row.tensors > 0) all.try_emplace(std::string(row.key), pointwise(row));
    return all;
  }();
  return table;
}

/// The operand of a product that stays the same while the other one is another in every set.
int shared_operand(const std::string& name, const json& line, const KernelCase& read) {
  if (!std::holds_alternative<Matmul>(read.op) || read.input_sets == 0)
    throw KernelCaseError(fmt::format("{}: shared_operand is for products with input_sets", name));
  const json& given = line["shared_operand"];
  if (given != "a" && given != "b")
    throw KernelCaseError(fmt::format("{}: shared_operand must be a or b, got {}", name, given.dump()));
  return given == "a" ? 0 : 1;
}

}  // namespace

std::vector<std::string> kernel_op_names() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : builders()) names.push_back(name);
  return names;
}

KernelCase kernel_case_from(const json& line) {
  if (!line.is_object()) throw KernelCaseError(kAnExample);
  if (!line.contains("op") || !line["op"].is_string()) throw KernelCaseError(kAnExample);
  const std::string name = line["op"].get<std::string>();
  const auto builder = builders().find(name);
  if (builder == builders().end()) {
    const std::string_view meant = config::other_value("op", name);
    throw KernelCaseError(
        fmt::format("unknown op {} ({})", name,
                    meant.empty() ? expected_names(name, kernel_op_names()) : fmt::format("did you mean {}?", meant)));
  }
  const json dtype = line.value("dtype", json("fp32"));
  const auto type = dtype.is_string() ? dtype_from(dtype.get<std::string>()) : std::nullopt;
  if (!type || !(is_half(*type) || *type == DType::fp32 || *type == DType::tf32))
    throw KernelCaseError(fmt::format("{}: dtype must be bf16, fp16, tf32 or fp32, got {}", name, dtype.dump()));
  static const json kEmpty = json::object();
  const json& params = line.contains("params") ? line["params"] : kEmpty;
  if (!params.is_object()) throw KernelCaseError(fmt::format("{}: params must be an object", name));
  Parameters reader(name, params);
  KernelCase result{builder->second(reader, *type), 0};
  reader.reject_leftovers();
  if (line.contains("input_sets")) {
    const json& sets = line["input_sets"];
    if (!sets.is_number_integer() || sets.get<std::int64_t>() < 1 || sets.get<std::int64_t>() > 1000000)
      throw KernelCaseError(
          fmt::format("{}: input_sets must be a whole number of at least 1, got {}", name, sets.dump()));
    result.input_sets = sets.get<int>();
  }
  if (line.contains("shared_operand")) result.shared_operand = shared_operand(name, line, result);
  return result;
}

}  // namespace ridgeline
