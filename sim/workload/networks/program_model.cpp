#include "sim/workload/networks/program_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <variant>

#include "sim/config/data_folder.h"
#include "sim/config/files_read.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/readable_files.h"
#include "sim/workload/aten/scan_kernels.h"
#include "sim/workload/networks/evaluate_expression.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline {

bool ProgramHandle::operator==(const ProgramHandle& other) const {
  if (program_ == other.program_) return true;
  if (!program_ || !other.program_ || program_->program.text != other.program_->program.text) return false;
  const auto& mine = program_->sizes;
  const auto& others = other.program_->sizes;
  return std::equal(mine.begin(), mine.end(), others.begin(), others.end(),
                    [](const auto& a, const auto& b) { return networks::text_of(a) == networks::text_of(b); });
}

namespace networks {
namespace {

using config::Node;
using config::Value;
namespace fs = std::filesystem;

/// A path as given, beside the file that names it, or below models/.
fs::path found(const Value& value) {
  const fs::path given = value.text();
  std::vector<fs::path> places{given};
  if (value.origin().name && given.is_relative())
    places.push_back(fs::path(*value.origin().name).parent_path() / given);
  if (given.is_relative()) places.push_back(config::data_folder("models") / given);
  std::error_code ignored;
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, ignored)) return place;
  value.fail(fmt::format("no file '{}' here, beside the model or in models/; programs end in .block", given.string()));
}

std::string text_of_file(const fs::path& path, const Value& value) {
  check_readable(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) value.fail(fmt::format("{} cannot be opened for reading", path.string()));
  std::string text(config::kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > config::kMaxBytes) value.fail(fmt::format("{} is larger than 1 MiB", path.string()));
  config::FilesRead::note(path);
  return text;
}

/// A path as the user would type it: relative where it lies below the working directory.
std::string shown(const fs::path& path) {
  std::error_code ignored;
  const fs::path relative = path.is_relative() ? path : fs::relative(path, ignored);
  return ignored || relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

ProgramValue value_of(const Value& value, const ProgramValue* otherwise) {
  if (value.is_list()) {
    auto list = std::make_shared<ProgramList>();
    for (const Value& item : value.list()) list->items.push_back(value_of(item, nullptr));
    if (otherwise != nullptr && !std::holds_alternative<std::shared_ptr<ProgramList>>(*otherwise) &&
        !std::holds_alternative<std::monostate>(*otherwise))
      value.fail(fmt::format("a list; expected {}", kind_of(*otherwise)));
    return list;
  }
  if (value.node().kind == Node::Kind::null) return std::monostate{};
  constexpr config::IntegerRange kWhole{-1, std::int64_t{1} << 36};
  if (otherwise != nullptr) {
    if (std::holds_alternative<std::int64_t>(*otherwise)) return value.integer(kWhole);
    if (std::holds_alternative<double>(*otherwise)) return value.number();
    if (std::holds_alternative<bool>(*otherwise)) return value.boolean();
    if (std::holds_alternative<std::string>(*otherwise)) return value.text();
    if (std::holds_alternative<std::shared_ptr<ProgramList>>(*otherwise)) value.fail("expected a list");
  }
  const std::string text = value.text();
  if (text == "true" || text == "false") return value.boolean();
  if (!text.empty() && text.find_first_not_of("0123456789-") == std::string::npos) return value.integer(kWhole);
  if (!text.empty() && text.find_first_not_of("0123456789-+.e") == std::string::npos) return value.number();
  return text;
}

/// A pass over one sample finds mistakes, and what reports and wrappers ask of a network.
void describe(ProgramModel& model, ModelDescription& d) {
  constexpr std::int64_t kLength = 128;
  TrainingDescription training;
  training.sequence_length = d.max_positions > 0 ? std::min(d.max_positions, kLength) : kLength;
  OpTrace trace;
  {
    eager::Eager eager(trace);
    eager.gradients_enabled = false;
    const families::Batch batch = make_program_batch(eager, model, training);
    ProgramNetwork network(eager, d, training, AttentionChoice::flash);  // takes grouped keys as they are
    d.layers = network.blocks();
    model.obstacle_to_stages = network.obstacle_to_stages();
    eager.recorder.phase = Phase::forward;
    { const Tensor loss = network.loss(batch); }
    eager.recorder.closed = true;
  }
  model.kinds.assign(static_cast<std::size_t>(d.layers), 0);
  for (const Call& call : trace.calls) {
    const auto* kernel = std::get_if<FusedKernel>(&trace.ops[call.op]);
    if (kernel != nullptr && eager::aten::scan::is_unmeasured(kernel->name)) model.packaged.insert(kernel->name);
    if (const auto* attention = std::get_if<Attention>(&trace.ops[call.op]);
        attention != nullptr && attention->head_dim > model.head_dim) {
      model.head_dim = attention->head_dim;
      model.heads = attention->heads;
    }
    if (call.layer < 0) continue;
    std::int64_t& kind = model.kinds[static_cast<std::size_t>(call.layer)];
    kind = static_cast<std::int64_t>((static_cast<std::uint64_t>(kind) ^ (call.op + 1)) * 0x9e3779b97f4a7c15u >> 1);
  }
}

bool splits_layers(const std::vector<Statement>& body) {
  const auto splits = [](const Expression& e, const auto& again) -> bool {
    const bool here = e.kind == Expression::Kind::call && e.items[0].text == "row_linear";
    return here ||
           std::any_of(e.items.begin(), e.items.end(), [&](const Expression& item) { return again(item, again); });
  };
  return std::any_of(body.begin(), body.end(), [&](const Statement& line) {
    if (splits_layers(line.body) || splits_layers(line.otherwise)) return true;
    return std::any_of(line.values.begin(), line.values.end(), [&](const Expression& e) { return splits(e, splits); });
  });
}

bool reads_length(const Expression& e) {
  return (e.scope == NameScope::given && e.text == "length") ||
         std::any_of(e.items.begin(), e.items.end(), reads_length);
}

}  // namespace

const ProgramValue* ProgramModel::size(std::string_view name) const {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (program.sizes[i].name == name) return &sizes[i];
  return nullptr;
}

std::int64_t ProgramModel::whole(std::string_view name, std::int64_t otherwise) const {
  const ProgramValue* value = size(name);
  const auto* whole = value != nullptr ? std::get_if<std::int64_t>(value) : nullptr;
  return whole != nullptr ? *whole : otherwise;
}

std::string text_of(const ProgramValue& value) {
  if (const auto* list = std::get_if<std::shared_ptr<ProgramList>>(&value)) {
    std::string text;
    for (const ProgramValue& item : (*list)->items) text += (text.empty() ? "" : ", ") + text_of(item);
    return "[" + text + "]";
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:g}", *real);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "null";
}

Node tree_of_program(const std::string& path) {
  const config::Origin origin{std::make_shared<const std::string>(path), 0, 0};
  Node tree;
  tree.kind = Node::Kind::mapping;
  tree.origin = origin;
  for (const auto& [key, text] : {std::pair{"family", std::string("program")}, std::pair{"program", path}}) {
    Node scalar;
    scalar.kind = Node::Kind::scalar;
    scalar.scalar = text;
    scalar.origin = origin;
    tree.entries.push_back({key, origin, std::move(scalar)});
  }
  return tree;
}

ModelDescription read_program(const Value& value, std::string fallback_name) {
  const Value file = value["program"];
  const fs::path path = found(file);
  auto model = std::make_shared<ProgramModel>();
  model->program = parse_network_program(text_of_file(path, file), shown(path));
  std::vector<std::string> keys{"name", "family", "program"};
  for (const ProgramSize& size : model->program.sizes) keys.push_back(size.name);
  const config::Mapping m(value, keys);
  std::vector<ProgramValue> given(model->program.sizes.size());
  const std::vector<ProgramValue> silent = [&] {  // types of keys follow from what they are without
    try {
      return evaluate_sizes(model->program, given);
    } catch (const config::ConfigError&) {
      return given;  // a default is made of keys that must be given
    }
  }();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ProgramSize& size = model->program.sizes[i];
    if (m.has(size.name)) given[i] = value_of(m[size.name], size.otherwise.empty() ? nullptr : &silent[i]);
    else if (size.otherwise.empty())
      value.fail(fmt::format("{} is missing, which {} needs{}", size.name, *model->program.file,
                             size.meaning.empty() ? "" : fmt::format(": {}", size.meaning)));
  }
  model->sizes = evaluate_sizes(model->program, std::move(given));
  bool free_length = false;
  for (const ProgramInput& input : model->program.inputs)
    for (const Expression& size : input.sizes) free_length = free_length || reads_length(size);
  if (!model->program.length.empty()) model->fixed_length = length_of(*model);
  else if (!free_length) model->fixed_length = 1;
  model->splits = splits_layers(model->program.network.body);
  for (const ProgramBlock& block : model->program.blocks) model->splits = model->splits || splits_layers(block.body);
  ModelDescription d;
  d.name = m["name"].text(std::move(fallback_name));
  d.family = ModelFamily::program;
  d.hidden = std::max<std::int64_t>(1, model->whole("hidden", 1));
  d.vocabulary = std::max<std::int64_t>(0, model->whole("vocabulary", 0));
  d.max_positions = model->fixed_length > 0 ? 0 : std::max<std::int64_t>(0, model->whole("max_positions", 0));
  d.heads = 1;
  d.key_value_heads = std::max<std::int64_t>(0, model->whole("key_value_heads", 0));
  d.feed_forward = model->whole("feed_forward", 0);
  d.tie_embeddings = false;
  d.program = ProgramHandle(model);
  describe(*model, d);
  d.heads = std::max<std::int64_t>(1, model->heads);
  d.head_width = model->head_dim;
  if (d.head_width * d.heads == d.hidden) d.head_width = 0;
  return d;
}

}  // namespace networks
}  // namespace ridgeline
