#include "sim/trace/op_trace/write_op_trace.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/trace/op_trace/op_text.h"
#include "sim/trace/record_names.h"
#include "sim/units/text_buffer.h"

namespace ridgeline::trace {
namespace {

using nlohmann::ordered_json;

std::string line_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

class Writer {
 public:
  explicit Writer(const OpTrace& trace) : trace_(trace), op_written_(trace.ops.size(), false) {}

  std::string write(const RecordingInfo& info) {
    ordered_json header{
        {"ridgeline", "op-trace"}, {"version", kFormatVersion},       {"producer", info.producer},
        {"title", info.title},     {"precision", info.precision},     {"samples", info.samples},
        {"tokens", info.tokens},   {"parameters", trace_.parameters}, {"model_flops", trace_.model_flops},
        {"notes", trace_.notes}};
    for_each_degree(info.ranks, [&](const char* name, std::int64_t ranks) {
      if (ranks > 1) header["parallel"][name] = ranks;
    });
    text_.room(kBytesARecord * trace_.records.size());
    text_.add(line_of(header));
    for (const ModuleName& module : trace_.modules) {
      ordered_json line{{"record", "module"}, {"name", module.name}};
      if (module.parent > 0) line["inside"] = module.parent;
      text_.add(line_of(line));
    }
    std::size_t begun = 0, ended = 0, repeated = 0, done = 0;
    for (std::uint32_t i = 0; i <= trace_.records.size(); ++i) {
      if (done < repeated && trace_.repeats[done].records.end == i) {
        text_.add("{\"record\":\"repeated\"}\n");
        ++done;
      }
      while (ended < begun && trace_.steps[ended].end == i) {
        text_.add("{\"record\":\"end\"}\n");
        ++ended;
      }
      while (begun < trace_.steps.size() && begun == ended && trace_.steps[begun].begin == i) {
        text_.add("{\"record\":\"step\"}\n");
        ++begun;
      }
      if (repeated < trace_.repeats.size() && trace_.repeats[repeated].records.begin == i)
        put(FMT_COMPILE("{{\"record\":\"repeat\",\"times\":{}}}\n"), trace_.repeats[repeated++].times);
      if (i < trace_.records.size()) write_record(trace_.records[i]);
    }
    while (ended++ < begun) text_.add("{\"record\":\"end\"}\n");
    return std::move(text_).take();
  }

 private:
  static constexpr std::size_t kBytesARecord = 110;  // seldom more

  /// Numbers and words that are short.
  template <typename Format, typename... Arguments>
  void put(const Format& format, const Arguments&... arguments) {
    text_.wrote(fmt::format_to(text_.room(256), format, arguments...));
  }

  void write_record(const Record& record) {
    switch (record.kind) {
      case Record::Kind::allocate: write_birth(record.index); break;
      case Record::Kind::free: put(FMT_COMPILE("{{\"record\":\"free\",\"id\":{}}}\n"), record.index); break;
      case Record::Kind::host:
        put(FMT_COMPILE("{{\"record\":\"host\",\"class\":\"{}\",\"times\":{}}}\n"), name_of(record.host_class),
            record.index);
        break;
      case Record::Kind::wait_for_gpu: text_.add("{\"record\":\"wait\"}\n"); break;
      case Record::Kind::record_event: write_event("event", record); break;
      case Record::Kind::wait_event: write_event("wait_event", record); break;
      case Record::Kind::host_waits_for_event: write_event("host_waits", record); break;
      case Record::Kind::op: write_call(trace_.calls[record.index]); break;
    }
  }

  void write_event(std::string_view name, const Record& record) {
    put(FMT_COMPILE("{{\"record\":\"{}\",\"event\":{},\"stream\":{}}}\n"), name, record.index, record.stream);
  }

  void write_birth(StorageId id) {
    if (id < next_storage_) return put(FMT_COMPILE("{{\"record\":\"allocate\",\"id\":{}}}\n"), id);
    write_storages_up_to(id, true);
  }

  // Calls may name storages that are not allocated, or not yet: of no bytes, or parts of others (parameters of a
  // buffer that gathers them). They are written with the next one that is.
  void write_storages_up_to(StorageId last, bool born = false) {
    for (; next_storage_ <= last; ++next_storage_) {
      const Storage& storage = trace_.storages[next_storage_];
      put(FMT_COMPILE("{{\"record\":\"storage\",\"id\":{},\"bytes\":{},\"category\":\"{}\""), next_storage_,
          storage.bytes, kCategoryWords[static_cast<std::size_t>(storage.category)]);
      if (storage.layer >= 0) put(FMT_COMPILE(",\"layer\":{}"), storage.layer);
      if (storage.module > 0) put(FMT_COMPILE(",\"module\":{}"), storage.module);
      if (storage.stream > 0) put(FMT_COMPILE(",\"stream\":{}"), storage.stream);
      if (storage.bytes > 0 && !(born && next_storage_ == last)) text_.add(",\"allocated\":false");
      text_.add("}\n");
    }
  }

  void write_call(const Call& call) {
    if (!op_written_[call.op]) {
      op_written_[call.op] = true;
      const Op& op = trace_.ops[call.op];
      ordered_json json{{"record", "op"}, {"id", call.op}};
      add_op(json, op);
      text_.add(line_of(json));
    }
    const std::size_t count = static_cast<std::size_t>(call.inputs) + call.outputs;
    for (std::size_t i = 0; i < count; ++i) write_storages_up_to(trace_.operands[call.operands_begin + i].storage);
    put(FMT_COMPILE("{{\"record\":\"call\",\"op\":{}"), call.op);
    write_operands("in", call.operands_begin, call.inputs);
    write_operands("out", call.operands_begin + call.inputs, call.outputs);
    put(FMT_COMPILE(",\"phase\":\"{}\""), kPhaseWords[static_cast<std::size_t>(call.phase)]);
    if (call.layer >= 0) put(FMT_COMPILE(",\"layer\":{}"), call.layer);
    if (call.module > 0) put(FMT_COMPILE(",\"module\":{}"), call.module);
    if (call.stream > 0) put(FMT_COMPILE(",\"stream\":{}"), call.stream);
    text_.add("}\n");
  }

  void write_operands(std::string_view key, std::uint32_t begin, std::uint32_t count) {
    put(FMT_COMPILE(",\"{}\":["), key);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Operand& operand = trace_.operands[begin + i];
      put(FMT_COMPILE("{}[{},{}]"), i > 0 ? "," : "", operand.storage, operand.bytes);
    }
    text_.add("]");
  }

  const OpTrace& trace_;
  std::vector<bool> op_written_;
  StorageId next_storage_ = 0;
  TextBuffer text_;
};

}  // namespace

std::string op_trace_lines(const RecordingInfo& info, const OpTrace& trace) { return Writer(trace).write(info); }

}  // namespace ridgeline::trace
