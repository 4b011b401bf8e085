#include "sim/trace/trace_builder.h"

#include <algorithm>
#include <cmath>

#include "sim/trace/profiler/unrecorded_layouts.h"

namespace ridgeline::trace {
namespace {

/// Operands that seem to lie as the result does, and do not.
void lay_out_apart(Op& op) {
  if (auto* pointwise = std::get_if<Pointwise>(&op); pointwise != nullptr && pointwise->input_count > 0) {
    if (pointwise->walk == Walk::contiguous) pointwise->walk = Walk::strided;
  } else if (auto* copy = std::get_if<Copy>(&op); copy != nullptr && copy->kind == CopyKind::contiguous) {
    copy->kind = CopyKind::permute;
  }
}

}  // namespace

void TraceBuilder::mention(std::int64_t id, std::int64_t bytes) {
  const auto found = alive_.find(id);
  if (found == alive_.end() || trace().storages[found->second].bytes < bytes) alive_[id] = unnamed_storage(bytes);
}

void TraceBuilder::host(HostClass host_class, std::int64_t times) {
  if (times > 0) trace().records.push_back({Record::Kind::host, host_class, 0, static_cast<std::uint32_t>(times)});
}

void TraceBuilder::host_time(double seconds) {
  constexpr double kMost = 4e9;  // of one record, an hour; times that lie further apart are no times
  host_carry_ += seconds * 1e6;
  if (!(std::abs(host_carry_) <= kMost)) host_carry_ = std::signbit(host_carry_) ? 0.0 : kMost;
  const double whole = std::max(0.0, std::floor(host_carry_));
  host_carry_ -= whole;
  host(HostClass::python_fixed, static_cast<std::int64_t>(whole));
}

void TraceBuilder::wait() { trace().records.push_back({Record::Kind::wait_for_gpu}); }

void TraceBuilder::begin_step() {
  const auto here = static_cast<std::uint32_t>(trace().records.size());
  trace().steps.push_back({here, here});
  modelled_host.begin_step();
}
void TraceBuilder::end_step() {
  if (!trace().steps.empty()) trace().steps.back().end = static_cast<std::uint32_t>(trace().records.size());
}

bool TraceBuilder::call(const AtenCall& call, const HostWork& host_work) {
  auto ops = map_aten(call, context);
  if (!ops || (ops->empty() && !call.kernels.empty())) return false;
  if (call.laid_out_apart)
    for (MappedOp& mapped : *ops) lay_out_apart(mapped.op);
  const std::optional<double> seconds = host_work ? std::optional(host_work()) : std::nullopt;
  if (!ops->empty()) add(call, std::move(*ops), true, seconds);
  else if (seconds) host_time(*seconds);
  else {
    const DispatcherHost::Work work = modelled_host.of_view(call);
    host(work.host_class, work.times);
  }
  return true;
}

void TraceBuilder::exact(const AtenCall& call, const Op& op, double host_seconds) {
  std::vector<MappedOp> ops;
  ops.push_back({op, std::vector<AtenTensor>(call.reads.size()), std::vector<AtenTensor>(call.writes.size())});
  add(call, std::move(ops), !std::holds_alternative<UnknownOp>(op), host_seconds);
}

bool TraceBuilder::link_copy(const AtenCall& call, std::optional<double> host_seconds) {
  if (!link_bytes_ || !goes_over_host_link(call)) return false;
  AtenTensor moved;
  moved.type = DType::uint8;
  moved.sizes = {std::max<std::int64_t>(1, link_bytes_(call.kernels))};
  const bool upload = call.kernels.front().name.starts_with("Memcpy HtoD");
  std::vector<MappedOp> ops;
  ops.push_back({Copy{upload ? CopyKind::host_to_device : CopyKind::device_to_host, moved.type, 1, moved.sizes[0], 1},
                 upload ? std::vector<AtenTensor>{} : std::vector{moved},
                 upload ? std::vector{moved} : std::vector<AtenTensor>{}, HostClass::other, HostClass::other});
  into_.defects.add("copies over the host's link, their measured time carried over by its rate");
  add(call, std::move(ops), false, host_seconds);
  return true;
}

void TraceBuilder::unknown(const AtenCall& call, std::optional<double> host_seconds) {
  if (link_copy(call, host_seconds)) return;
  UnknownOp op = unknown_op(call);
  double measured = 0.0;
  for (const MeasuredKernel& kernel : call.kernels) measured += kernel.seconds;
  const bool carried = carried_bytes_ && !call.kernels.empty();  // known shapes do not say what such an operation does
  if (carried || op.read_bytes + op.written_bytes == 0) {
    const double moving =
        std::max(0.0, measured - kernel_fixed_ * static_cast<double>(std::max<std::size_t>(1, call.kernels.size())));
    const auto bytes = carried ? carried_bytes_(call.kernels) : static_cast<std::int64_t>(moving * bytes_per_second_);
    op.read_bytes = bytes / 2;
    op.written_bytes = bytes - bytes / 2;
    into_.defects.add("calls without shapes or a rule, their measured time carried over by class");
  }
  AtenTensor read, written;
  read.type = written.type = DType::uint8;
  read.sizes = {op.read_bytes};
  written.sizes = {op.written_bytes};
  std::vector<MappedOp> ops;
  ops.push_back({op, {read}, {written}, HostClass::other, HostClass::other});
  add(call, std::move(ops), false, host_seconds);
}

void TraceBuilder::collective(const AtenCall& call, const std::optional<Collective>& op, double host_seconds) {
  if (!op) return unknown(call, host_seconds);
  AtenTensor buffer;
  buffer.type = DType::uint8;
  buffer.sizes = {op->bytes};
  std::vector<MappedOp> ops;
  ops.push_back({*op, {buffer}, {buffer}, HostClass::other, HostClass::other});
  add(call, std::move(ops), true, host_seconds);
}

void TraceBuilder::record(const Record& event) {
  trace().records.push_back(event);
  trace().events = std::max(trace().events, event.index + 1);
}

void TraceBuilder::add(const AtenCall& call, std::vector<MappedOp> ops, bool understood,
                       std::optional<double> host_seconds) {
  RecordedCall recorded{call.name, 0.0, static_cast<std::int64_t>(call.kernels.size()), understood};
  for (const MeasuredKernel& kernel : call.kernels)
    recorded.measured += kernel.seconds, recorded.beside += kernel.beside;
  const auto origin = static_cast<std::uint32_t>(into_.recorded.size());
  into_.recorded.push_back(std::move(recorded));
  if (host_seconds) host_time(*host_seconds);
  else
    for (const DispatcherHost::Work& work : modelled_host.before(call)) host(work.host_class, work.times);
  for (MappedOp& mapped : ops) {
    if (!host_seconds) {
      const DispatcherHost::Work work = modelled_host.of(call, mapped);
      host(work.host_class, work.times);
    }
    Call entry;
    entry.op = index_of(mapped.op);
    entry.operands_begin = static_cast<std::uint32_t>(trace().operands.size());
    const auto* lists = std::get_if<MultiTensor>(&mapped.op);
    std::vector<Operand> operands;
    if (ops.size() == 1)
      operands = named_operands(call, lists ? call.reads.size() : mapped.inputs.size(),
                                lists ? call.writes.size() : mapped.outputs.size());
    if (operands.empty()) operands = lists ? operands_of_lists(call, *lists) : operands_of(call, mapped);
    entry.outputs = static_cast<std::uint16_t>(mapped.outputs.size());  // lists keep theirs among the inputs
    entry.inputs = static_cast<std::uint16_t>(operands.size() - mapped.outputs.size());
    entry.phase = call.phase;
    entry.stream = stream_;
    entry.layer = call.layer;
    entry.module = call.module;
    trace().operands.insert(trace().operands.end(), operands.begin(), operands.end());
    trace().records.push_back(
        {Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace().calls.size())});
    trace().calls.push_back(entry);
    into_.origin.push_back(origin);
  }
}

std::vector<Operand> TraceBuilder::named_operands(const AtenCall& call, std::size_t inputs, std::size_t outputs) {
  std::vector<Operand> operands;
  if (call.reads.size() != inputs || call.writes.size() != outputs) return operands;
  for (const auto* side : {&call.reads, &call.writes})
    for (const NamedOperand& named : *side) {
      mention(named.storage, std::max(named.bytes, named.whole));
      operands.push_back({alive_[named.storage], named.bytes});
    }
  return operands;
}

std::vector<Operand> TraceBuilder::operands_of(const AtenCall& call, const MappedOp& mapped) {
  const auto* pointwise = std::get_if<Pointwise>(&mapped.op);
  const bool adds_gradients = pointwise != nullptr && (pointwise->function == PointwiseFunction::add ||
                                                       pointwise->function == PointwiseFunction::add_in_place);
  std::vector<Operand> operands;
  for (const AtenTensor& tensor : mapped.inputs) {
    const bool recent = call.phase != Phase::backward || operands.empty() || adds_gradients;
    operands.push_back({storage_of_input(tensor, recent, operands), tensor.bytes()});
  }
  // The source of a copy lies before its destination, which no operation reads.
  const bool in_place = call.name.ends_with('_') && call.name != "aten::copy_" && !operands.empty();
  for (const AtenTensor& tensor : mapped.outputs) {
    const bool known = tensor.storage != AtenTensor::kNoStorage && alive_.contains(tensor.storage);
    const bool same =
        !known && in_place && operands.size() == mapped.inputs.size() && tensor.bytes() == operands.front().bytes;
    operands.push_back({same ? operands.front().storage : storage_of_result(tensor), tensor.bytes()});
  }
  return operands;
}

std::vector<Operand> TraceBuilder::operands_of_lists(const AtenCall& call, const MultiTensor& op) {
  const std::vector<ListRole> roles = optimizer_lists_.next(op);
  const std::size_t tensors = op.sizes->size();
  std::vector<Operand> operands;
  std::size_t argument = 0;
  for (const ListRole role : roles) {
    const TensorList* list = call.list(argument++);
    const bool recorded = list != nullptr && list->size() == tensors;
    for (std::size_t i = 0; i < tensors; ++i) {
      const std::int64_t bytes = (*op.sizes)[i] * bytes_of(op.type);
      if (recorded && (*list)[i].storage != AtenTensor::kNoStorage)
        if (const auto found = alive_.find((*list)[i].storage); found != alive_.end()) {
          operands.push_back({found->second, bytes});
          continue;
        }
      const auto [known, fresh] = listed_.try_emplace({role, i, bytes});
      if (fresh) known->second = unnamed_storage(bytes);
      operands.push_back({known->second, bytes});
    }
  }
  return operands;
}

StorageId TraceBuilder::unnamed_storage(std::int64_t bytes) {
  trace().storages.push_back({bytes, Category::temporaries, -1});
  return static_cast<StorageId>(trace().storages.size()) - 1;
}

StorageId TraceBuilder::storage_of_input(const AtenTensor& tensor, bool recent, const std::vector<Operand>& used) {
  if (tensor.storage != AtenTensor::kNoStorage)
    if (const auto found = alive_.find(tensor.storage); found != alive_.end()) return found->second;
  const auto late = late_results_.find(tensor.bytes());
  if (recent && late != late_results_.end()) {
    for (auto it = late->second.rbegin(); it != late->second.rend(); ++it)
      if (std::none_of(used.begin(), used.end(), [&](const Operand& o) { return o.storage == *it; })) return *it;
  }
  return unnamed_storage(tensor.bytes());
}

StorageId TraceBuilder::storage_of_result(const AtenTensor& tensor) {
  if (tensor.storage != AtenTensor::kNoStorage)
    if (const auto found = alive_.find(tensor.storage); found != alive_.end()) return found->second;
  constexpr std::size_t kRemembered = 3;
  const StorageId fresh = unnamed_storage(tensor.bytes());
  auto& late = late_results_[tensor.bytes()];
  late.push_back(fresh);
  if (late.size() > kRemembered) late.erase(late.begin());
  return fresh;
}

std::uint32_t TraceBuilder::index_of(const Op& op) {
  const std::size_t hash = hash_of(op);
  const auto [begin, end] = table_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (trace().ops[it->second] == op) return it->second;
  trace().ops.push_back(op);
  const auto index = static_cast<std::uint32_t>(trace().ops.size()) - 1;
  table_.emplace(hash, index);
  return index;
}

}  // namespace ridgeline::trace
