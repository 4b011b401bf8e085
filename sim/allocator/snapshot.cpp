#include "sim/allocator/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/allocator/frames.h"
#include "sim/allocator/pickle.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // far above any device, far below what overflows a sum

class SnapshotReader {
 public:
  explicit SnapshotReader(const std::string& source) : source_(source) {}

  std::vector<MemorySnapshot> read(const PickleValue& root) {
    // torch.cuda.memory_snapshot() alone is the list of segments.
    const PickleDict none_but_segments{{{PickleValue::text("segments"), root}}};
    const PickleDict& dict = root.as_sequence() != nullptr ? none_but_segments : dict_of(root, "the snapshot");
    const PickleValue* segments = dict.find("segments");
    const PickleValue* traces = dict.find("device_traces");
    if (segments == nullptr) fail("the snapshot has no \"segments\"; it should be what _dump_snapshot() writes");
    const PickleSequence none;
    const PickleSequence& all_segments = list_of(*segments, "segments");
    const PickleSequence& all_traces = traces != nullptr ? list_of(*traces, "device_traces") : none;
    AllocatorSettings allocator;
    if (const PickleValue* settings = dict.find("allocator_settings"); settings != nullptr)
      read_settings(dict_of(*settings, "allocator_settings"), allocator);
    std::vector<MemorySnapshot> snapshots;
    const std::set<std::int64_t> devices = devices_of(all_segments, all_traces);
    for (const std::int64_t device : devices) {
      MemorySnapshot& snapshot = snapshots.emplace_back();
      snapshot.device = device;
      snapshot.devices = static_cast<int>(devices.size());
      snapshot.settings = allocator;
      read_segments(all_segments, snapshot);
      read_history(all_traces, snapshot);
    }
    return snapshots;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError(fmt::format("{}: {}", source_, what)); }

  const PickleDict& dict_of(const PickleValue& value, const std::string& what) const {
    const PickleDict* dict = value.as_dict();
    if (dict == nullptr) fail(fmt::format("{} is not a dict", what));
    return *dict;
  }
  const PickleSequence& list_of(const PickleValue& value, const std::string& what) const {
    const PickleSequence* sequence = value.as_sequence();
    if (sequence == nullptr) fail(fmt::format("{} is not a list", what));
    return *sequence;
  }
  const PickleValue& field(const PickleDict& dict, const char* key, const std::string& where) const {
    const PickleValue* value = dict.find(key);
    if (value == nullptr) fail(fmt::format("{} has no \"{}\"", where, key));
    return *value;
  }
  std::int64_t integer(const PickleDict& dict, const char* key, const std::string& where) const {
    const auto* number = std::get_if<std::int64_t>(&field(dict, key, where).value);
    if (number == nullptr) fail(fmt::format("\"{}\" of {} is not an integer", key, where));
    return *number;
  }
  std::int64_t bytes(const PickleDict& dict, const char* key, const std::string& where) const {
    const std::int64_t value = integer(dict, key, where);
    if (value < 0 || value > kMostBytes) fail(fmt::format("\"{}\" of {} is no size of memory: {}", key, where, value));
    return value;
  }
  const std::string& text(const PickleDict& dict, const char* key, const std::string& where) const {
    const std::string* value = field(dict, key, where).as_text();
    if (value == nullptr) fail(fmt::format("\"{}\" of {} is not text", key, where));
    return *value;
  }

  std::set<std::int64_t> devices_of(const PickleSequence& segments, const PickleSequence& traces) const {
    std::set<std::int64_t> devices;
    for (std::size_t i = 0; i < traces.items.size(); ++i) {
      if (!list_of(traces.items[i], fmt::format("device_traces[{}]", i)).items.empty())
        devices.insert(static_cast<std::int64_t>(i));
    }
    for (std::size_t i = 0; i < segments.items.size(); ++i) devices.insert(device_of(segments, i));
    return devices;
  }
  std::int64_t device_of(const PickleSequence& segments, std::size_t i) const {
    const std::string where = fmt::format("segments[{}]", i);
    const PickleDict& dict = dict_of(segments.items[i], where);
    return dict.find("device") != nullptr ? integer(dict, "device", where) : 0;
  }

  static void hold(const PickleDict& block, std::int64_t bytes, std::map<std::string, Holder>& held) {
    Holder& holder = held[place_of(block)];
    holder.bytes += bytes;
    ++holder.blocks;
  }

  void read_segments(const PickleSequence& segments, MemorySnapshot& snapshot) const {
    std::map<std::string, Holder> held;
    for (std::size_t i = 0; i < segments.items.size(); ++i) {
      if (device_of(segments, i) != snapshot.device) continue;
      const std::string where = fmt::format("segments[{}]", i);
      const PickleDict& dict = dict_of(segments.items[i], where);
      SegmentView segment;
      segment.address = static_cast<Address>(integer(dict, "address", where));
      segment.bytes = bytes(dict, "total_size", where);
      segment.pool = text(dict, "segment_type", where) == "small" ? PoolKind::small : PoolKind::large;
      if (const PickleValue* expandable = dict.find("is_expandable"); expandable != nullptr)
        segment.expandable = expandable->value == PickleValue::boolean(true).value;
      segment.stream = owner_index(owner_of(dict, where), snapshot.owners);
      const PickleSequence& blocks = list_of(field(dict, "blocks", where), where + ".blocks");
      Address address = segment.address;  // older snapshots leave it out: blocks tile the segment
      std::int64_t sum = 0;
      for (std::size_t b = 0; b < blocks.items.size(); ++b) {
        const std::string block_where = fmt::format("{}.blocks[{}]", where, b);
        const PickleDict& block = dict_of(blocks.items[b], block_where);
        segment.blocks.push_back(read_block(block, address, block_where));
        if (segment.blocks.back().state != BlockView::State::free) hold(block, segment.blocks.back().bytes, held);
        const std::int64_t size = segment.blocks.back().bytes;
        if (size > segment.bytes - sum) fail(fmt::format("the blocks of {} are larger than its total_size", where));
        sum += size;
        address = segment.blocks.back().address + static_cast<Address>(size);
      }
      if (sum != segment.bytes)
        fail(fmt::format("the blocks of {} add up to {} bytes; its total_size is {}", where, sum, segment.bytes));
      snapshot.segments.push_back(std::move(segment));
    }
    std::sort(snapshot.segments.begin(), snapshot.segments.end(),
              [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
    for (auto& [place, holder] : held) {
      holder.place = place;
      snapshot.holders.push_back(std::move(holder));
    }
    std::stable_sort(snapshot.holders.begin(), snapshot.holders.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  }
  StreamPool owner_of(const PickleDict& dict, const std::string& where) const {
    StreamPool owner;
    if (dict.find("stream") != nullptr) owner.stream = integer(dict, "stream", where);
    if (const PickleValue* id = dict.find("segment_pool_id"); id != nullptr) {
      const PickleSequence& pair = list_of(*id, "segment_pool_id of " + where);
      const auto part = [&](std::size_t i) {
        const auto* number = i < pair.items.size() ? std::get_if<std::int64_t>(&pair.items[i].value) : nullptr;
        return number != nullptr ? *number : 0;
      };
      owner.graph = part(0);
      owner.graph_pool = part(1);
    }
    return owner;
  }
  static StreamId owner_index(const StreamPool& owner, std::vector<StreamPool>& owners) {
    const auto known = std::find(owners.begin(), owners.end(), owner);
    if (known != owners.end()) return static_cast<StreamId>(known - owners.begin());
    owners.push_back(owner);
    return static_cast<StreamId>(owners.size()) - 1;
  }
  BlockView read_block(const PickleDict& dict, Address address, const std::string& where) const {
    BlockView block;
    block.address = dict.find("address") != nullptr ? static_cast<Address>(integer(dict, "address", where)) : address;
    block.bytes = bytes(dict, "size", where);
    const std::string& state = text(dict, "state", where);
    if (state == "active_allocated") block.state = BlockView::State::allocated;
    else if (state == "active_pending_free" || state == "active_awaiting_free")
      block.state = BlockView::State::pending_free;
    else if (state == "inactive") block.state = BlockView::State::free;
    else
      fail(fmt::format("\"state\" of {} is \"{}\"; expected active_allocated, active_pending_free or inactive", where,
                       state));
    if (block.state != BlockView::State::free && dict.find("requested_size") != nullptr)
      block.requested = bytes(dict, "requested_size", where);
    return block;
  }

  void read_history(const PickleSequence& traces, MemorySnapshot& snapshot) const {
    snapshot.history.source = source_;
    if (snapshot.device < 0 || static_cast<std::size_t>(snapshot.device) >= traces.items.size()) return;
    const auto& trace = *traces.items[static_cast<std::size_t>(snapshot.device)].as_sequence();
    for (std::size_t i = 0; i < trace.items.size(); ++i) {
      const std::string where = fmt::format("device_traces[{}][{}]", snapshot.device, i);
      const PickleDict& dict = dict_of(trace.items[i], where);
      HistoryEvent event;
      event.line = static_cast<std::uint32_t>(i + 1);
      try {
        event.action = action_of(text(dict, "action", where));
      } catch (const std::invalid_argument& error) {
        fail(fmt::format("{}: {}", where, error.what()));
      }
      if (text(dict, "action", where) == "oom") read_out_of_memory(dict, event.line, where, snapshot);
      if (event.action == HistoryEvent::Action::other) continue;
      event.address = static_cast<Address>(integer(dict, "addr", where));
      event.bytes = bytes(dict, "size", where);
      if (dict.find("stream") != nullptr) event.stream = integer(dict, "stream", where);
      snapshot.history.events.push_back(event);
    }
  }

  void read_out_of_memory(const PickleDict& dict, std::uint32_t line, const std::string& where,
                          MemorySnapshot& snapshot) const {
    OutOfMemoryEvent event;
    event.line = line;
    event.bytes = bytes(dict, "size", where);
    event.device_free = -1;
    for (const char* key : {"device_free", "addr"})  // before PyTorch 2.1 it lay where others have their address
      if (event.device_free < 0 && dict.find(key) != nullptr) event.device_free = bytes(dict, key, where);
    event.place = place_of(dict);
    snapshot.out_of_memory.push_back(std::move(event));
  }

  void read_settings(const PickleDict& dict, AllocatorSettings& settings) const {
    const std::string where = "allocator_settings";
    if (const PickleValue* value = dict.find("expandable_segments"); value != nullptr)
      settings.expandable_segments = value->value == PickleValue::boolean(true).value;
    if (dict.find("max_split_size") != nullptr) {
      const std::int64_t size = integer(dict, "max_split_size", where);  // -1: without limit
      if (size > 0) settings.max_split_size = size;
    }
    if (const PickleValue* value = dict.find("garbage_collection_threshold"); value != nullptr) {
      if (const auto* threshold = std::get_if<double>(&value->value); threshold != nullptr && *threshold >= 0)
        settings.garbage_collection_threshold = *threshold;
    }
    if (const PickleValue* value = dict.find("roundup_power2_divisions"); value != nullptr) {
      // Keys are the sizes in MiB from which they hold: 1, 2, 4 …
      const PickleDict& divisions = dict_of(*value, where + ".roundup_power2_divisions");
      for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i) {
        const std::string key = fmt::format("{}", std::int64_t{1} << i);
        if (divisions.find(key) == nullptr) continue;
        const std::int64_t count = integer(divisions, key.c_str(), where + ".roundup_power2_divisions");
        if (count < 0 || count > (1 << 20) || (count & (count - 1)) != 0)
          fail(fmt::format("roundup_power2_divisions of {} MiB is {}; expected a power of two", key, count));
        settings.roundup_power2_divisions[i] = static_cast<int>(count);
      }
    }
  }

  const std::string& source_;
};

}  // namespace

std::vector<MemorySnapshot> read_snapshots(std::string_view bytes, const std::string& source) {
  return SnapshotReader(source).read(read_pickle(bytes, source));
}

MemorySnapshot read_snapshot(std::string_view bytes, const std::string& source) {
  std::vector<MemorySnapshot> snapshots = read_snapshots(bytes, source);
  for (MemorySnapshot& snapshot : snapshots)
    if (!snapshot.history.events.empty()) return std::move(snapshot);
  return snapshots.empty() ? MemorySnapshot{} : std::move(snapshots.front());
}

}  // namespace ridgeline
