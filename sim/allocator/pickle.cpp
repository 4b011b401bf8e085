#include "sim/allocator/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <stdexcept>
#include <unordered_map>

#include "sim/allocator/pickle_lines.h"
#include "sim/allocator/pickle_stream.h"

namespace ridgeline {
namespace {

using Pair = std::pair<PickleValue, PickleValue>;

/// Opcodes that are recognised only to be refused by name.
const char* name_of_refused(unsigned char opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 'b': return "BUILD";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    default: return nullptr;
  }
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  PickleValue run() {
    for (;;) {
      opcode_at_ = position_;
      const auto opcode = static_cast<unsigned char>(take(1, "the file ends before the pickle does")[0]);
      if (opcode == '.') {
        if (!marks_.empty() || stack_.size() != 1) fail("the pickle stops with unfinished values");
        return std::move(stack_.back());
      }
      step(opcode);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}: offset {}: {}", source_, opcode_at_, what));
  }
  std::string_view take(std::uint64_t count, const char* missing = "the file ends inside a value") {
    if (count > bytes_.size() - position_) fail(missing);
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }
  /// Little-endian.
  std::uint64_t take_unsigned(unsigned count) {
    const std::string_view taken = take(count);
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(taken[i])) << (8 * i);
    return value;
  }
  /// The rest of a line, as protocols 0 and 1 write arguments.
  std::string_view take_line() {
    const std::size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) fail("the file ends inside a value");
    const std::string_view line = take(end - position_);
    ++position_;
    return line;
  }
  void push_line(unsigned char opcode) {
    try {
      stack_.push_back(pickled_line(opcode, take_line()));
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }
  std::uint64_t take_number() {
    std::uint64_t number = 0;
    const std::string_view line = take_line();
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{} || end != line.data() + line.size()) fail("a place in the memo is no number");
    return number;
  }
  void push_text(unsigned length_bytes) { stack_.push_back(PickleValue::text(take(take_unsigned(length_bytes)))); }
  void push_integer(std::int64_t value) { stack_.push_back(PickleValue::integer(value)); }

  /// Two's complement, little-endian. What 64 bits do not hold (PyTorch writes the line -1 of a C++ frame as 2^64 - 1)
  /// becomes the nearest double.
  void push_long() {
    const std::string_view taken = take(take_unsigned(1));
    if (taken.empty()) return push_integer(0);
    const bool negative = (static_cast<unsigned char>(taken.back()) & 0x80) != 0;
    double nearest = 0.0;
    std::uint64_t low = negative ? ~std::uint64_t{0} : 0;
    bool fits = true;
    for (std::size_t i = taken.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(taken[i]);
      nearest = nearest * 256.0 + (negative && i + 1 == taken.size() ? byte - 256.0 : static_cast<double>(byte));
      if (i >= 8) fits = fits && byte == (negative ? 0xff : 0);
      else low = low << 8 | byte;
    }
    fits = fits && (taken.size() < 8 || ((low >> 63) != 0) == negative);
    if (fits) push_integer(static_cast<std::int64_t>(low));
    else stack_.push_back({nearest});
  }
  void push_double() {
    std::uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);  // big-endian, unlike the rest
    stack_.push_back({std::bit_cast<double>(bits)});
  }

  PickleValue pop() {
    if (stack_.size() <= floor()) fail("a value is missing");
    PickleValue value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) fail("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> values(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  std::vector<PickleValue> pop_some(std::size_t count) {
    std::vector<PickleValue> values(count);
    for (std::size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }
  const PickleValue& top() {
    if (stack_.size() <= floor()) fail("a value is missing");
    return stack_.back();
  }

  static PickleNesting* nesting_of(const PickleValue& value) {
    if (const auto* sequence = std::get_if<std::shared_ptr<PickleSequence>>(&value.value)) return &(*sequence)->nesting;
    if (const auto* dict = std::get_if<std::shared_ptr<PickleDict>>(&value.value)) return &(*dict)->nesting;
    return nullptr;
  }
  void put_inside(PickleNesting& outer, const PickleValue& value) {
    PickleNesting* inner = nesting_of(value);
    if (inner == nullptr) return;
    inner->inside = true;
    outer.height = std::max(outer.height, inner->height + 1);
    if (outer.height > kPickleDepth) fail(fmt::format("more than {} values inside each other", kPickleDepth));
    if (outer.inside) fail("a value changes after it was put into another, or contains itself");
  }
  void push_tuple(std::vector<PickleValue> values) {
    PickleValue tuple = PickleValue::tuple(std::move(values));
    auto& sequence = *std::get<std::shared_ptr<PickleSequence>>(tuple.value);
    for (const PickleValue& value : sequence.items) put_inside(sequence.nesting, value);
    stack_.push_back(std::move(tuple));
  }
  void append(std::vector<PickleValue> values) {
    const auto* list = std::get_if<std::shared_ptr<PickleSequence>>(&top().value);
    if (list == nullptr || (*list)->is_tuple) fail("there is no list to append to");
    if ((*list)->nesting.inside) fail("a value changes after it was put into another, or contains itself");
    for (PickleValue& value : values) {
      put_inside((*list)->nesting, value);
      (*list)->items.push_back(std::move(value));
    }
  }
  void set_items(std::vector<PickleValue> values) {
    const auto* dict = std::get_if<std::shared_ptr<PickleDict>>(&top().value);
    if (dict == nullptr) fail("there is no dict to set items of");
    if (values.size() % 2 != 0) fail("a key without a value");
    if ((*dict)->nesting.inside) fail("a value changes after it was put into another, or contains itself");
    for (std::size_t i = 0; i < values.size(); i += 2) {
      put_inside((*dict)->nesting, values[i]);
      put_inside((*dict)->nesting, values[i + 1]);
      (*dict)->items.emplace_back(std::move(values[i]), std::move(values[i + 1]));
    }
  }
  void remember(std::uint64_t number) { memo_[number] = top(); }
  void recall(std::uint64_t number) {
    const auto it = memo_.find(number);
    if (it == memo_.end()) fail(fmt::format("nothing was remembered as number {}", number));
    stack_.push_back(it->second);
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        if (const auto protocol = take_unsigned(1); protocol > 5)
          fail(fmt::format("pickle protocol {}; protocols 0 to 5 can be read", protocol));
        break;
      case 0x95:
        if (take_unsigned(8) > bytes_.size() - position_) fail("a frame reaches beyond the end of the file");
        break;
      case 'I':
      case 'L':
      case 'F':
      case 'S':
      case 'V': push_line(opcode); break;
      case 'U': push_text(1); break;
      case 'T': push_text(4); break;
      case 'd': {
        std::vector<PickleValue> items = pop_to_mark();
        stack_.push_back(PickleValue::dict());
        set_items(std::move(items));
        break;
      }
      case 'l': {
        std::vector<PickleValue> items = pop_to_mark();
        stack_.push_back(PickleValue::list());
        append(std::move(items));
        break;
      }
      case 'p': remember(take_number()); break;
      case 'g': recall(take_number()); break;
      case '2': stack_.push_back(top()); break;
      case 'N': stack_.emplace_back(); break;
      case 0x88: stack_.push_back(PickleValue::boolean(true)); break;
      case 0x89: stack_.push_back(PickleValue::boolean(false)); break;
      case 'J': push_integer(static_cast<std::int32_t>(take_unsigned(4))); break;
      case 'K': push_integer(static_cast<std::int64_t>(take_unsigned(1))); break;
      case 'M': push_integer(static_cast<std::int64_t>(take_unsigned(2))); break;
      case 0x8a: push_long(); break;
      case 'G': push_double(); break;
      case 0x8c: push_text(1); break;
      case 'X': push_text(4); break;
      case 0x8d: push_text(8); break;
      case ']': stack_.push_back(PickleValue::list()); break;
      case '}': stack_.push_back(PickleValue::dict()); break;
      case ')': push_tuple({}); break;
      case 0x85: push_tuple(pop_some(1)); break;
      case 0x86: push_tuple(pop_some(2)); break;
      case 0x87: push_tuple(pop_some(3)); break;
      case 't': push_tuple(pop_to_mark()); break;
      case '(': marks_.push_back(stack_.size()); break;
      case 'a': append(pop_some(1)); break;
      case 'e': append(pop_to_mark()); break;
      case 's': set_items(pop_some(2)); break;
      case 'u': set_items(pop_to_mark()); break;
      case 'q': remember(take_unsigned(1)); break;
      case 'r': remember(take_unsigned(4)); break;
      case 0x94: remember(memo_.size()); break;
      case 'h': recall(take_unsigned(1)); break;
      case 'j': recall(take_unsigned(4)); break;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size()) marks_.pop_back();
        else pop();
        break;
      case '1': pop_to_mark(); break;
      default:
        if (const char* name = name_of_refused(opcode); name != nullptr)
          fail(fmt::format("{} would run Python code; only plain data is read", name));
        fail(fmt::format("unknown opcode 0x{:02x}", opcode));
    }
  }

  std::string_view bytes_;
  const std::string& source_;
  std::size_t position_ = 0, opcode_at_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue> memo_;
};

class PickleWriter {
 public:
  std::string run(const PickleValue& value) {
    write(value);
    return std::move(out_).finish();
  }

 private:
  void write(const PickleValue& value) {
    std::visit([&](const auto& v) { write(v); }, value.value);
  }
  void write(std::monostate) { out_.none(); }
  void write(bool truth) { out_.boolean(truth); }
  void write(std::int64_t number) { out_.integer(number); }
  void write(double number) { out_.real(number); }
  void write(const PickleValue::Text& text) {
    const auto [held, first] = held_texts_.try_emplace(text.get());
    if (first) held->second = out_.text(*text);
    else out_.recall(held->second);
  }
  void write(const std::shared_ptr<PickleSequence>& sequence) {
    if (written_before(sequence)) return;
    const bool tuple = sequence->is_tuple;
    if (!tuple) {
      out_.open_list();
      remember(sequence);
      if (sequence->items.empty()) return;
    }
    out_.mark();
    for (const PickleValue& item : sequence->items) write(item);
    if (tuple) out_.close_tuple();
    else out_.close_list();
  }
  void write(const std::shared_ptr<PickleDict>& dict) {
    if (written_before(dict)) return;
    out_.open_dict();
    remember(dict);
    if (dict->items.empty()) return;
    out_.mark();
    for (const auto& [key, value] : dict->items) write(key), write(value);
    out_.close_dict();
  }

  template <typename Container>
  void remember(const std::shared_ptr<Container>& container) {
    if (container.use_count() > 1) containers_.emplace(container.get(), out_.remember());
  }
  template <typename Container>
  bool written_before(const std::shared_ptr<Container>& container) {
    if (container.use_count() == 1) return false;
    const auto it = containers_.find(container.get());
    if (it == containers_.end()) return false;
    out_.recall(it->second);
    return true;
  }

  PickleStream out_;
  std::unordered_map<const std::string*, PickleStream::Place> held_texts_;  ///< by the object that holds the text
  std::unordered_map<const void*, PickleStream::Place> containers_;
};

}  // namespace

PickleValue PickleValue::list(std::vector<PickleValue> items) {
  auto sequence = std::make_shared<PickleSequence>();
  sequence->items = std::move(items);
  return {std::move(sequence)};
}
PickleValue PickleValue::tuple(std::vector<PickleValue> items) {
  PickleValue value = list(std::move(items));
  std::get<std::shared_ptr<PickleSequence>>(value.value)->is_tuple = true;
  return value;
}
PickleValue PickleValue::dict(std::vector<Pair> items) {
  auto dict = std::make_shared<PickleDict>();
  dict->items = std::move(items);
  return {std::move(dict)};
}

const std::string* PickleValue::as_text() const {
  const auto* text = std::get_if<Text>(&value);
  return text != nullptr ? text->get() : nullptr;
}
const PickleSequence* PickleValue::as_sequence() const {
  const auto* sequence = std::get_if<std::shared_ptr<PickleSequence>>(&value);
  return sequence != nullptr ? sequence->get() : nullptr;
}
const PickleDict* PickleValue::as_dict() const {
  const auto* dict = std::get_if<std::shared_ptr<PickleDict>>(&value);
  return dict != nullptr ? dict->get() : nullptr;
}

const PickleValue* PickleDict::find(std::string_view key) const {
  for (auto it = items.rbegin(); it != items.rend(); ++it) {
    if (const std::string* text = it->first.as_text(); text != nullptr && *text == key) return &it->second;
  }
  return nullptr;
}

PickleValue read_pickle(std::string_view bytes, const std::string& source) { return PickleReader(bytes, source).run(); }

std::string write_pickle(const PickleValue& value) { return PickleWriter().run(value); }

}  // namespace ridgeline
