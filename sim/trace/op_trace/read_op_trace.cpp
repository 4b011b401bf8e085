#include "sim/trace/op_trace/read_op_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "sim/input/text_source.h"
#include "sim/trace/op_trace/line_fields.h"
#include "sim/trace/record_names.h"
#include "sim/trace/trace_builder.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/workload/host_class.h"
#include "sim/workload/repeated_range.h"

namespace ridgeline::trace {
namespace {

class Reader {
 public:
  void header(const object& line) {
    element mark;
    std::string_view name;
    if (line["ridgeline"].get(mark) != simdjson::SUCCESS || mark.get(name) != simdjson::SUCCESS || name != "op-trace")
      throw LineError("not an op trace: the first line must have \"ridgeline\":\"op-trace\"");
    const std::int64_t version = integer(line, "version", 0);
    if (version != kFormatVersion)
      throw LineError(
          fmt::format("version {} of the format is not known; this program reads version {}", version, kFormatVersion));
    RecordingInfo& info = recording_.info;
    info.producer = text_or_empty(line, "producer");
    info.title = text_or_empty(line, "title");
    info.precision = text_or_empty(line, "precision");
    FieldReader{line}.unless("matmul_tf32", builder_.context.tf32, info.precision == "tf32");
    FieldReader{line}.unless("cudnn_tf32", builder_.context.cudnn_tf32, true);  // PyTorch's default
    builder_.modelled_host.optimizer = text_or_empty(line, "optimizer");
    info.samples = number_or_zero(line, "samples");
    info.tokens = number_or_zero(line, "tokens");
    trace_.parameters = integer(line, "parameters", 0);
    trace_.model_flops = number_or_zero(line, "model_flops");
    object ranks;
    if (line["parallel"].get(ranks) == simdjson::SUCCESS)
      for_each_degree(info.ranks, [&](const char* key, std::int64_t& degree) {
        element given;
        if (ranks[key].get(given) == simdjson::SUCCESS) degree = integer(given, key, 1, kMostRanks);
      });
    simdjson::dom::array notes;
    if (line["notes"].get(notes) == simdjson::SUCCESS)
      for (const element note : notes) {
        std::string_view text;
        if (note.get(text) == simdjson::SUCCESS) trace_.notes.emplace_back(text);
      }
  }

  void record(const object& line) {
    const std::string_view kind = word(line, "record");
    if (kind == "storage") storage(line);
    else if (kind == "allocate") allocate(line);
    else if (kind == "free") free(line);
    else if (kind == "op") op(line);
    else if (kind == "call") call(line);
    else if (kind == "aten") aten(line);
    else if (kind == "host") host(line);
    else if (kind == "module") module(line);
    else if (kind == "wait") trace_.records.push_back({Record::Kind::wait_for_gpu});
    else if (kind == "event") event(line, Record::Kind::record_event);
    else if (kind == "wait_event") event(line, Record::Kind::wait_event);
    else if (kind == "host_waits") event(line, Record::Kind::host_waits_for_event);
    else if (kind == "repeat") begin_repeat(line);
    else if (kind == "repeated") end_repeat();
    else if (kind == "step") begin_step();
    else if (kind == "end") end_step();
    else
      throw LineError(fmt::format(
          "unknown \"record\":\"{}\"; expected storage, allocate, free, op, call, aten, host, module, wait, event, "
          "wait_event, host_waits, repeat, repeated, step, end",
          kind));
  }

  Replayable finish() {
    if (in_step_) throw LineError("the file ends inside a step: it is cut off, or \"end\" is missing");
    if (trace_.steps.empty()) throw LineError("the trace has no step");
    if (!replayable_.recorded.empty() && replayable_.origin.size() != trace_.calls.size())
      throw LineError("the trace mixes \"call\" and \"aten\" records");
    if (pipelined() && !trace_.repeats.empty()) trace_.stage_actions = {trace_.steps.back()};
    replayable_.memory_recorded = true;
    replayable_.memory_known = std::any_of(trace_.records.begin(), trace_.records.end(),
                                           [](const Record& r) { return r.kind == Record::Kind::allocate; });
    return std::move(replayable_);
  }

 private:
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(trace_.records.size()); }

  void storage(const object& line) {
    const auto id = static_cast<StorageId>(integer(line, "id", 0, kMost));
    if (id != storages_.size())
      throw LineError(fmt::format("storage {} follows storage {}: ids count up and are never used again", id,
                                  static_cast<std::int64_t>(storages_.size()) - 1));
    Storage storage;
    storage.bytes = integer(line, "bytes", 0);
    storage.category = static_cast<Category>(name_index(word(line, "category"), "category", kCategoryWords));
    storage.layer = layer_of(line);
    storage.stream = stream_of(line);
    storage.module = module_of(line);
    storages_.push_back(static_cast<StorageId>(trace_.storages.size()));
    trace_.storages.push_back(storage);
    bool born = true;
    if (element given; line["allocated"].get(given) == simdjson::SUCCESS) FieldReader{line}("allocated", born);
    born = born && storage.bytes > 0;
    alive_.push_back(born);
    builder_.know(id, storages_[id]);
    if (born) trace_.records.push_back({Record::Kind::allocate, HostClass::other, 0, storages_[id]});
  }
  /// One whose line says that it is not allocated yet.
  void allocate(const object& line) {
    const auto id = static_cast<StorageId>(integer(line, "id", 0, kMost));
    if (id >= alive_.size()) throw LineError(fmt::format("storage {} is allocated but has no line above", id));
    if (alive_[id]) throw LineError(fmt::format("storage {} is allocated but alive", id));
    alive_[id] = true;
    trace_.records.push_back({Record::Kind::allocate, HostClass::other, 0, storages_[id]});
  }
  void free(const object& line) {
    const auto id = static_cast<StorageId>(integer(line, "id", 0, kMost));
    if (id >= alive_.size() || !alive_[id]) throw LineError(fmt::format("storage {} is freed but not alive", id));
    alive_[id] = false;
    builder_.forget(id);
    trace_.records.push_back({Record::Kind::free, HostClass::other, 0, storages_[id]});
  }
  void op(const object& line) {
    const std::int64_t id = integer(line, "id", 0, kMost);
    Op op = read_op(line);
    if (const auto* collective = std::get_if<Collective>(&op)) check(*collective);
    if (!ops_.emplace(id, static_cast<std::uint32_t>(trace_.ops.size())).second)
      throw LineError(fmt::format("op {} is described twice", id));
    trace_.ops.push_back(std::move(op));
  }
  void check(const Collective& collective) {
    if (collective.ranks < 1 || collective.ranks > kMostRanks)
      throw LineError(fmt::format("\"ranks\" must be 1 to {}, got {}", kMostRanks, collective.ranks));
    if (collective.group == GroupKind::shard) recording_.info.ranks.strategy = DataStrategy::fsdp;
  }
  void call(const object& line) {
    const std::int64_t id = integer(line, "op", 0, kMost);
    const auto found = ops_.find(id);
    if (found == ops_.end()) throw LineError(fmt::format("op {} is called but not described above", id));
    Call call;
    call.op = found->second;
    call.operands_begin = static_cast<std::uint32_t>(trace_.operands.size());
    call.inputs = operands(line, "in");
    call.outputs = operands(line, "out");
    call.phase = static_cast<Phase>(name_index(word(line, "phase"), "phase", kPhaseWords));
    call.layer = layer_of(line);
    call.stream = stream_of(line);
    call.module = module_of(line);
    trace_.records.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace_.calls.size())});
    trace_.calls.push_back(call);
  }
  std::uint16_t operands(const object& line, const char* key) {
    simdjson::dom::array list;
    if (required(line, key).get(list) != simdjson::SUCCESS)
      throw LineError(fmt::format("\"{}\" must be a list of [storage, bytes]", key));
    std::size_t count = 0;
    for (const element item : list) {
      simdjson::dom::array pair;
      if (item.get(pair) != simdjson::SUCCESS || pair.size() != 2)
        throw LineError(fmt::format("\"{}\" must be a list of [storage, bytes]", key));
      const auto storage = static_cast<StorageId>(integer(pair.at(0).value_unsafe(), key, 0, kMost));
      if (storage >= storages_.size())
        throw LineError(fmt::format("\"{}\" names storage {}, which has no line above", key, storage));
      trace_.operands.push_back({storages_[storage], integer(pair.at(1).value_unsafe(), key, 0, kLargest)});
      if (++count > std::numeric_limits<std::uint16_t>::max())
        throw LineError(fmt::format("\"{}\" has more than 65535 operands", key));
    }
    return static_cast<std::uint16_t>(count);
  }
  void host(const object& line) {
    const std::size_t index = name_index(word(line, "class"), "class", host_class_names());
    trace_.records.push_back({Record::Kind::host, static_cast<HostClass>(index), 0,
                              static_cast<std::uint32_t>(integer(line, "times", 1, kMost))});
  }
  void event(const object& line, Record::Kind kind) {
    const auto number = static_cast<std::uint32_t>(integer(line, "event", 0, kMostEvents));
    if (kind != Record::Kind::record_event && number >= trace_.events)
      throw LineError(fmt::format("event {} is waited for but not recorded above", number));
    trace_.events = std::max(trace_.events, number + 1);
    trace_.records.push_back({kind, HostClass::other, stream_of(line), number});
  }
  /// A part of the network, numbered from 1 in the order of the file; those around it come first.
  void module(const object& line) {
    if (trace_.modules.size() >= kMostModules) throw LineError(fmt::format("more than {} modules", kMostModules));
    trace_.modules.push_back({std::string(word(line, "name")), module_of(line, "inside")});
  }
  void begin_step() {
    if (in_step_) throw LineError("a step begins inside a step");
    in_step_ = true;
    builder_.begin_step();
  }
  void begin_repeat(const object& line) {
    if (!in_step_ || in_repeat_) throw LineError("\"repeat\" must stand in a step, and not in another one");
    if (!trace_.repeats.empty() && trace_.repeats.back().records.begin >= trace_.steps.back().begin)
      throw LineError("a step has two \"repeat\": one is read");
    in_repeat_ = true;
    trace_.repeats.push_back({{here(), here()}, integer(line, "times", 1, kMost)});
  }
  /// A round of a pipeline frees what rounds before it allocated.
  [[nodiscard]] bool pipelined() const { return recording_.info.ranks.pipelined(); }
  void end_repeat() {
    if (!in_repeat_) throw LineError("\"repeated\" without \"repeat\" above");
    in_repeat_ = false;
    StepRange& range = trace_.repeats.back().records;
    range.end = here();
    const std::uint32_t length = range.end - range.begin;
    if (length > range.begin - trace_.steps.back().begin ||
        (!pipelined() && !runs_again(trace_, {range.begin - length, range.begin}, range)))
      throw LineError(
          "what \"repeat\" begins must do what the records of the step before it do, and free all that it allocates");
  }
  void end_step() {
    if (!in_step_) throw LineError("a step ends that has not begun");
    if (in_repeat_) throw LineError("a step ends before \"repeated\"");
    if (!replayable_.recorded.empty() && !trace_.repeats.empty())
      throw LineError("\"repeat\" stands with \"call\" records only, not with \"aten\"");
    in_step_ = false;
    if (!replayable_.recorded.empty()) {
      const DispatcherHost::Work work = builder_.modelled_host.end_step();
      builder_.host(work.host_class, work.times);
    }
    builder_.end_step();
  }
  /// A call of PyTorch's dispatcher, mapped to our operations as it is read.
  void aten(const object& line) {
    AtenCall call;
    call.name = word(line, "name");
    call.phase = static_cast<Phase>(name_index(word(line, "phase"), "phase", kPhaseWords));
    call.layer = layer_of(line);
    call.module = module_of(line);
    simdjson::dom::array list;
    if (line["in"].get(list) == simdjson::SUCCESS)
      for (const element value : list) call.inputs.push_back(argument(value));
    if (line["out"].get(list) == simdjson::SUCCESS)
      for (const element value : list) {
        Argument result = argument(value);
        if (auto* tensor = std::get_if<AtenTensor>(&result)) call.outputs.push_back(std::move(*tensor));
      }
    const std::size_t storages = trace_.storages.size(), operands = trace_.operands.size();
    if (!builder_.call(call)) builder_.unknown(call);
    // What a call makes is worked out from numbers that may be anything: a line could not say it.
    const auto too_large = [](const auto& part) { return part.bytes < 0 || part.bytes > kLargest; };
    if (std::any_of(trace_.storages.begin() + static_cast<std::ptrdiff_t>(storages), trace_.storages.end(),
                    too_large) ||
        std::any_of(trace_.operands.begin() + static_cast<std::ptrdiff_t>(operands), trace_.operands.end(), too_large))
      throw LineError(fmt::format("{} makes more bytes than any device holds", call.name));
  }
  Argument argument(const element& value) const {
    double number = 0.0;
    bool flag = false;
    std::string_view text;
    simdjson::dom::array list;
    object fields;
    if (value.get(number) == simdjson::SUCCESS) return number;
    if (value.get(flag) == simdjson::SUCCESS) return flag ? 1.0 : 0.0;
    if (value.get(text) == simdjson::SUCCESS) return std::string(text);
    if (value.get(list) == simdjson::SUCCESS) {
      Numbers numbers;
      for (const element item : list) {
        if (item.get(flag) == simdjson::SUCCESS) number = flag ? 1.0 : 0.0;
        else if (item.get(number) != simdjson::SUCCESS)
          throw LineError(fmt::format("a list of numbers holds {}", simdjson::minify(item)));
        numbers.push_back(number);
      }
      return numbers;
    }
    if (value.get(fields) != simdjson::SUCCESS) return {};
    if (fields["tensors"].get(list) != simdjson::SUCCESS) return tensor(fields);
    TensorList tensors;
    for (const element item : list) {
      object own;
      if (item.get(own) != simdjson::SUCCESS) throw LineError("\"tensors\" must be a list of tensors");
      tensors.push_back(tensor(own));
    }
    return tensors;
  }
  AtenTensor tensor(const object& fields) const {
    AtenTensor tensor;
    FieldReader{fields}("type", tensor.type);
    const auto whole_numbers = [&](const char* key, std::int64_t least, std::vector<std::int64_t>& into) {
      simdjson::dom::array list;
      if (fields[key].get(list) != simdjson::SUCCESS) return false;
      for (const element item : list) into.push_back(integer(item, key, least, kLargest));
      return true;
    };
    if (!whole_numbers("sizes", 0, tensor.sizes)) throw LineError("a tensor needs \"sizes\"");
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.sizes) {
      if (size > 0 && elements > kLargest / size) throw LineError("a tensor has more elements than any device holds");
      elements *= std::max<std::int64_t>(1, size);
    }
    if (whole_numbers("strides", 0, tensor.strides) && tensor.strides.size() != tensor.sizes.size())
      throw LineError("a tensor's \"strides\" and \"sizes\" differ in number");
    element storage;
    if (fields["storage"].get(storage) == simdjson::SUCCESS && !storage.is_null()) {
      tensor.storage = integer(storage, "storage", 0, kMost);
      if (tensor.storage >= static_cast<std::int64_t>(storages_.size()))
        throw LineError(fmt::format("a tensor names storage {}, which has no line above", tensor.storage));
    }
    bool host = false;
    if (fields["host"].get(host) == simdjson::SUCCESS) tensor.on_host = host;
    return tensor;
  }
  static std::int16_t layer_of(const object& line) {
    element value;
    if (line["layer"].get(value) != simdjson::SUCCESS) return -1;
    return static_cast<std::int16_t>(integer(value, "layer", -1, std::numeric_limits<std::int16_t>::max()));
  }

  std::uint16_t module_of(const object& line, const char* key = "module") const {
    element value;
    if (line[key].get(value) != simdjson::SUCCESS) return 0;
    return static_cast<std::uint16_t>(integer(value, key, 0, static_cast<std::int64_t>(trace_.modules.size())));
  }

  /// Streams of a trace are numbered; what they are for is not written.
  std::uint8_t stream_of(const object& line) {
    element value;
    if (line["stream"].get(value) != simdjson::SUCCESS) return 0;
    const auto stream = static_cast<std::size_t>(integer(value, "stream", 0, kMostStreams));
    while (stream > 0 && trace_.streams.size() <= stream)
      trace_.streams.push_back(trace_.streams.empty() ? "default" : fmt::format("stream {}", trace_.streams.size()));
    return static_cast<std::uint8_t>(stream);
  }

  static constexpr std::size_t kMostModules = std::numeric_limits<std::uint16_t>::max() - 1;
  static constexpr std::int64_t kMostRanks = 1 << 20;
  static constexpr std::int64_t kMostStreams = 63, kMostEvents = 1 << 26;
  static constexpr std::int64_t kMost = (std::int64_t{1} << 32) - 2;
  Replayable replayable_;
  Recording& recording_ = replayable_.recording;
  OpTrace& trace_ = recording_.trace;
  TraceBuilder builder_{replayable_};
  std::vector<StorageId> storages_;  ///< by the file's id
  std::vector<bool> alive_;          ///< by storage
  std::unordered_map<std::int64_t, std::uint32_t> ops_;
  bool in_step_ = false, in_repeat_ = false;
};

}  // namespace

namespace {

Replayable parse(std::string_view text, const std::string& source) {
  Reader reader;
  simdjson::dom::parser parser;
  std::size_t number = 0;
  bool seen_header = false;
  try {
    while (!text.empty()) {
      keep_budget_often("reading an op trace");
      ++number;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      object json;
      element root;
      if (const auto error = parser.parse(line.data(), line.size()).get(root); error != simdjson::SUCCESS)
        throw LineError(fmt::format("not a line of JSON: {}", simdjson::error_message(error)));
      if (root.get(json) != simdjson::SUCCESS) throw LineError("every line must be a JSON object");
      if (!seen_header) reader.header(json);
      else reader.record(json);
      seen_header = true;
    }
    if (!seen_header) throw LineError("the file is empty");
    return reader.finish();
  } catch (const LineError& error) {
    throw UserError(fmt::format("{}:{}: {}", source, std::max<std::size_t>(1, number), error.what()));
  }
}

}  // namespace

Recording parse_op_trace(std::string_view text, const std::string& source) { return parse(text, source).recording; }

Recording read_op_trace(const std::string& path) { return parse_op_trace(read_text(path), path); }

Replayable read_replayable_op_trace(const std::string& path) { return parse(read_text(path), path); }

}  // namespace ridgeline::trace
