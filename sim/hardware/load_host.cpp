#include "sim/hardware/load_host.h"

#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/field_reader.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/resolve_file.h"

namespace ridgeline {
namespace {

using config::Range;

/// Generous: a hundred times what anybody measured.
constexpr Range kHostTime{0.0, 10.0}, kWorkspace{0.0, 1e12}, kScale{1e-6, 1000.0};

/// The tree of a file of hw/`folder`, laid over the one it is based on.
config::Node tree_over_base(std::string_view folder, const std::string& file, int depth = 0) {
  config::Node tree = config::load_yaml(file);
  const config::Value root(tree);
  const config::Value base = root["base"];
  if (!base.exists()) return tree;
  if (depth > 4) base.fail("files based on files, more than four deep");
  config::Node whole = tree_over_base(folder, described_file("base", folder, base.text()), depth + 1);
  lay_over(whole, tree);
  return whole;
}

void read_software(FieldReader& r, Software& s) {
  r.optional_number("cuda", s.cuda, {1.0, 99.9});
  r.optional_flag("has_compile", s.has_compile);
  r.optional_number("least_capability", s.least_capability, {0.0, 99.9});
  r.optional_number("most_capability", s.most_capability, {0.0, 99.9});
  r.flag("prefers_cudnn_attention_on_hopper", s.prefers_cudnn_attention_on_hopper);
  r.flag("has_flash_attention", s.has_flash_attention);
  r.optional_number("flash_attention_time", s.flash_attention_time, {0.1, 10.0});
  r.optional_number("hopper_product_time", s.hopper_product_time, {0.1, 10.0});
  r.optional_flag("matmul_tf32", s.matmul_tf32);
  r.flag("lazy_module_loading", s.lazy_module_loading);
  r.flag("addmm_fuses_bias", s.addmm_fuses_bias);
  r.integer("foreach_blocks_per_launch", s.foreach_blocks_per_launch, 1, 1 << 20);
  r.integers("foreach_tensors_per_launch", s.foreach_tensors_per_launch, 5, 1, 1 << 20);
  r.integer("foreach_chunk", s.foreach_chunk, 1, 1 << 30);
  r.flag("zero_grad_to_none", s.zero_grad_to_none);
  r.flag("clips_by_lists", s.clips_by_lists);
  r.flag("clipping_waits", s.clipping_waits);
  r.flag("softmax_saves_input", s.softmax_saves_input);
  r.optional_flag("checkpoint_stops_early", s.checkpoint_stops_early);
  r.optional_flag("jit_draws_by_four", s.jit_draws_by_four);
  r.flag("mask_always_added", s.mask_always_added);
  r.optional_flag("compiled_mask", s.compiled_mask);
  r.integer("foreach_adam_lists", s.foreach_adam_lists, 1, 2);
  r.flag("softmax_keeps_long_rows", s.softmax_keeps_long_rows);
  r.flag("softmax_fills_blocks", s.softmax_fills_blocks);
  r.flag("gathers_by_vectors", s.gathers_by_vectors);
  r.optional_flag("norms_by_vectors", s.norms_by_vectors);
  r.flag("norms_sum_in_parts", s.norms_sum_in_parts);
  r.optional_flag("reorders_compiled", s.reorders_compiled);
  r.optional_flag("four_bit_keeps_input", s.four_bit_keeps_input);
  r.optional_flag("adapters_of_layer_type", s.adapters_of_layer_type);
  r.optional_flag("math_attention_in_fp32", s.math_attention_in_fp32);
  r.integer("eight_bit_block", s.eight_bit_block, 1, 1 << 20);
  r.flag("foreach_by_default", s.foreach_by_default);
  r.number("memory_spread", s.memory_spread, {0.0, 1.0});
  r.quantity("cublas_workspace", s.cublas_workspace, kWorkspace);
  r.quantity("cublas_workspace_hopper", s.cublas_workspace_hopper, kWorkspace);
  r.quantity("cublaslt_workspace", s.cublaslt_workspace, kWorkspace);
  r.text("default_gelu", s.default_gelu);
}

}  // namespace

Host load_host(std::string_view name_or_path, std::span<const std::string_view> class_names,
               const std::vector<config::Override>& overrides) {
  const std::string file = described_file("host", "hosts", name_or_path);
  config::Node tree = tree_over_base("hosts", file);
  refuse_keys_of_files(overrides);
  for (const config::Override& change : overrides) config::apply_override(tree, change);

  Host host;
  const config::Node own = config::load_yaml(file);
  const bool describes_a_host = config::Value(own)["base"].exists() && !config::Value(own)["known"].exists();
  host.name = std::filesystem::path(file).stem().string();
  host.class_costs.resize(class_names.size());
  FieldReader reader{config::Value(tree)};
  reader.document(
      [&] {
        reader.number("scale", host.scale, kScale);
        reader.number("spread", host.spread, {0.0, 1.0});
        reader.optional_flag("known", host.known);
        reader.optional_flag("launch_blocking", host.launch_blocking);
        reader.optional_section("scales_seen", [&] {
          reader.number("least", host.least_scale, kScale);
          reader.number("most", host.most_scale, kScale);
        });
        reader.optional_section("parts", [&] {
          reader.optional_number("python", host.parts.python, kScale);
          reader.optional_number("dispatcher", host.parts.dispatcher, kScale);
          reader.optional_number("autograd", host.parts.autograd, kScale);
          reader.optional_number("allocation", host.parts.allocation, kScale);
          reader.optional_number("launch", host.parts.launch, kScale);
          reader.optional_number("backward", host.parts.backward, kScale);
          reader.optional_number("inference", host.parts.inference, kScale);
        });
        reader.quantity("launch_call", host.launch_call, kHostTime);
        reader.quantity("graph_launch", host.graph_launch, kHostTime);
        reader.section("classes", [&] {
          for (std::size_t i = 0; i < class_names.size(); ++i) {
            reader.quantity(class_names[i], host.class_costs[i], kHostTime);
          }
        });
      },
      {"title", "base"});
  // A file laid over another, and a scale that is stated, are about one host.
  if (describes_a_host) host.known = true;
  for (const config::Override& change : overrides)
    if (change.key == "scale" || change.key.starts_with("parts")) host.known = true;
  return host;
}

std::vector<std::string> host_names() { return config::yaml_names(config::data_folder("hw") / "hosts"); }

Software load_software(std::string_view name_or_path, const std::vector<config::Override>& overrides) {
  const std::string file = described_file("software", "software", name_or_path);
  config::Node tree = tree_over_base("software", file);
  refuse_keys_of_files(overrides);
  for (const config::Override& change : overrides) config::apply_override(tree, change);
  Software software;
  software.name = std::filesystem::path(file).stem().string();
  FieldReader reader{config::Value(tree)};
  reader.document([&] { read_software(reader, software); }, {"title", "base"});
  software.title = config::Value(tree)["title"].text(software.name);
  if (software.default_gelu != "erf" && software.default_gelu != "tanh") {
    config::Value(tree)["default_gelu"].fail("expected erf or tanh");
  }
  return software;
}

std::vector<std::string> software_names() { return config::yaml_names(config::data_folder("hw") / "software"); }

}  // namespace ridgeline
