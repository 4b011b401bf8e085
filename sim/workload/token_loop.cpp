#include "sim/workload/token_loop.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "sim/workload/op_fields.h"

namespace ridgeline {
namespace {

template <typename Visit>
struct VisitNumbers {
  Visit visit;
  template <typename Value>
  void operator()(std::string_view, Value& value) const {
    using Plain = std::remove_const_t<Value>;
    if constexpr (std::is_same_v<Plain, std::int64_t>) visit(value);
    else if constexpr (std::is_same_v<Plain, std::vector<std::int64_t>>)
      for (auto& one : value) visit(one);
  }
  template <typename Value>
  void unless(std::string_view name, Value& value, const std::remove_const_t<Value>&) const {
    (*this)(name, value);
  }
};
/// Calls `visit` with every number among the fields of an operation.
template <typename AnyOp, typename Visit>
void for_each_number(AnyOp& op, Visit visit) {
  for_each_field(op, VisitNumbers<Visit>{visit});
}

std::vector<std::int64_t> numbers_of(const Op& op) {
  std::vector<std::int64_t> numbers;
  for_each_number(op, [&](const std::int64_t& number) { numbers.push_back(number); });
  return numbers;
}

bool same_storage(const Storage& a, const Storage& b) {
  return a.category == b.category && a.layer == b.layer && a.stream == b.stream && a.module == b.module;
}

/// Whether two tokens do the same on storages of the same names, sizes aside.
bool same_token(const OpTrace& a, const TokenLoop::Place& of_a, const OpTrace& b, const TokenLoop::Place& of_b) {
  const std::uint32_t length = of_a.body.end - of_a.body.begin;
  if (of_b.body.end - of_b.body.begin != length) return false;
  const NamesInToken names_a(a, of_a), names_b(b, of_b);
  for (std::uint32_t i = 0; i < length; ++i) {
    const Record &one = a.records[of_a.body.begin + i], &other = b.records[of_b.body.begin + i];
    if (one.kind != other.kind || one.host_class != other.host_class || one.stream != other.stream) return false;
    switch (one.kind) {
      case Record::Kind::allocate:
        if (!same_storage(a.storages[one.index], b.storages[other.index])) return false;
        break;
      case Record::Kind::free:
        if (!(names_a.of(one.index) == names_b.of(other.index))) return false;
        break;
      case Record::Kind::host:
        if (one.index != other.index) return false;
        break;
      case Record::Kind::wait_for_gpu: break;
      case Record::Kind::op: {
        const Call &call = a.calls[one.index], &like = b.calls[other.index];
        if (call.inputs != like.inputs || call.outputs != like.outputs || call.phase != like.phase ||
            call.layer != like.layer || call.module != like.module || call.stream != like.stream ||
            a.ops[call.op].index() != b.ops[like.op].index())
          return false;
        const std::uint32_t operands = static_cast<std::uint32_t>(call.inputs) + call.outputs;
        for (std::uint32_t k = 0; k < operands; ++k)
          if (!(names_a.of(a.operands[call.operands_begin + k].storage) ==
                names_b.of(b.operands[like.operands_begin + k].storage)))
            return false;
        break;
      }
      case Record::Kind::record_event:
      case Record::Kind::wait_event:
      case Record::Kind::host_waits_for_event: return false;
    }
  }
  return true;
}

/// Calls in records, in order.
std::vector<std::uint32_t> calls_in(const OpTrace& trace, StepRange records) {
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = records.begin; i < records.end; ++i)
    if (trace.records[i].kind == Record::Kind::op) calls.push_back(trace.records[i].index);
  return calls;
}

}  // namespace

std::vector<StorageId> births_in(const OpTrace& trace, StepRange records) {
  std::vector<StorageId> births;
  for (std::uint32_t i = records.begin; i < records.end; ++i)
    if (trace.records[i].kind == Record::Kind::allocate) births.push_back(trace.records[i].index);
  return births;
}

NamesInToken::NamesInToken(const OpTrace& trace, const TokenLoop::Place& place)
    : trace_(trace), before_(births_in(trace, place.before)), body_(births_in(trace, place.body)) {
  for (std::uint32_t i = place.step; i < place.before.begin && first_of_step_ == UINT32_MAX; ++i)
    if (trace.records[i].kind == Record::Kind::allocate) first_of_step_ = trace.records[i].index;
}

NameInToken NamesInToken::of(StorageId storage) const {
  if (trace_.storages[storage].bytes == 0) return {NameInToken::Of::nothing, 0};
  const auto number_in = [&](const std::vector<StorageId>& births) {
    const auto found = std::lower_bound(births.begin(), births.end(), storage);
    return found != births.end() && *found == storage ? static_cast<std::int64_t>(found - births.begin()) : -1;
  };
  if (const std::int64_t number = number_in(body_); number >= 0)
    return {NameInToken::Of::token, static_cast<std::uint32_t>(number)};
  if (const std::int64_t number = number_in(before_); number >= 0)
    return {NameInToken::Of::token_before, static_cast<std::uint32_t>(number)};
  if (storage >= first_of_step_) return {NameInToken::Of::step, storage - first_of_step_};
  return {NameInToken::Of::trace, storage};
}

const TokenLoop::Piece& TokenLoop::piece_of(std::int64_t token) const {
  const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), token,
                                       [](std::int64_t at, const Piece& piece) { return at < piece.begin; });
  return *(behind - 1);
}

Op TokenLoop::op(std::size_t varying, std::int64_t token) const {
  const Piece& piece = piece_of(token);
  const auto remainder = static_cast<std::size_t>((token - piece.begin) % kPeriod);
  const std::int64_t u = (token - piece.begin) / kPeriod;
  const VaryingOp& one = piece.ops[varying];
  Op op = one.base[remainder];
  const Terms* terms = one.numbers[remainder].data();
  for_each_number(op, [&](std::int64_t& number) { number = (terms++)->at(u); });
  return op;
}

std::int64_t TokenLoop::bytes(std::size_t varying, std::int64_t token) const {
  const Piece& piece = piece_of(token);
  return piece.births[varying][static_cast<std::size_t>((token - piece.begin) % kPeriod)].at((token - piece.begin) /
                                                                                             kPeriod);
}

bool TokenLoop::same_births(std::size_t one, std::size_t other) const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.births[one] == piece.births[other]; });
}

namespace {
/// Pieces as short as this are run token by token; of longer ones, as many at the beginning.
constexpr std::int64_t kRead = 3 * TokenLoop::kPeriod, kShort = kRead + 2 * TokenLoop::kPeriod;
}  // namespace

std::vector<std::int64_t> tokens_to_read(std::int64_t first, std::span<const std::int64_t> ends) {
  std::vector<std::int64_t> tokens;
  for (const std::int64_t end : ends) {
    const std::int64_t length = end - first, middle = first + length / 2;
    const auto add = [&](std::int64_t begin, std::int64_t until) {
      for (std::int64_t token = begin; token < until; ++token) tokens.push_back(token);
    };
    if (length <= kShort) {
      add(first, end);
    } else {
      add(first, first + kRead);
      add(std::max(middle, first + kRead), std::min(middle + TokenLoop::kPeriod, end - TokenLoop::kPeriod));
      add(end - TokenLoop::kPeriod, end);
    }
    first = end;
  }
  return tokens;
}

class TokenLoopMaker {
 public:
  TokenLoopMaker(const OpTrace& trace, const OpTrace& samples, std::span<const SampledToken> sampled)
      : trace_(trace), samples_(samples), sampled_(sampled) {}

  std::optional<TokenLoop> make(std::vector<TokenLoop::Place> places, std::int64_t first,
                                std::span<const std::int64_t> ends, std::vector<std::size_t>& wrong) {
    loop_.places = std::move(places);
    loop_.first = first;
    loop_.end = ends.back();
    if (!same_everywhere()) return std::nullopt;
    find_slots();
    find_varying();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::int64_t begin = i == 0 ? first : ends[i - 1];
      if (!add_piece(begin, ends[i])) wrong.push_back(i);
    }
    return std::move(loop_);
  }

 private:
  bool same_everywhere() {
    const TokenLoop::Place& body = loop_.places.back();
    for (const TokenLoop::Place& other : loop_.places) {
      if (!same_token(trace_, body, trace_, other)) return false;
      const auto calls = calls_in(trace_, body.body), likes = calls_in(trace_, other.body);
      for (std::size_t i = 0; i < calls.size(); ++i)
        if (trace_.calls[calls[i]].op != trace_.calls[likes[i]].op) return false;
    }
    return std::all_of(sampled_.begin(), sampled_.end(),
                       [&](const SampledToken& token) { return same_token(trace_, body, samples_, token.place); });
  }

  void find_slots() {
    std::vector<std::uint32_t>& slots = loop_.slots;
    const auto refine = [&](const OpTrace& trace, StepRange records) {
      const std::vector<std::uint32_t> calls = calls_in(trace, records);
      slots.resize(calls.size());
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
      for (std::size_t i = 0; i < calls.size(); ++i)
        slots[i] = known.try_emplace({slots[i], trace.calls[calls[i]].op}, static_cast<std::uint32_t>(known.size()))
                       .first->second;
      loop_.slot_count = known.size();
      return calls;
    };
    body_calls_ = refine(trace_, loop_.places.back().body);
    for (const SampledToken& token : sampled_) calls_.push_back(refine(samples_, token.place.body));
    body_births_ = births_in(trace_, loop_.places.back().body);
    for (const SampledToken& token : sampled_) births_.push_back(births_in(samples_, token.place.body));
    call_of_slot_.resize(loop_.slot_count);
    for (std::size_t i = slots.size(); i-- > 0;) call_of_slot_[slots[i]] = i;
  }
  [[nodiscard]] const Op& op_of(std::size_t sample, std::size_t call) const {
    return samples_.ops[samples_.calls[calls_[sample][call]].op];
  }
  [[nodiscard]] std::int64_t bytes_of(std::size_t sample, std::size_t birth) const {
    return samples_.storages[births_[sample][birth]].bytes;
  }

  void find_varying() {
    for (std::uint32_t slot = 0; slot < loop_.slot_count; ++slot) {
      const std::size_t call = call_of_slot_[slot];
      const Op& op = trace_.ops[trace_.calls[body_calls_[call]].op];
      for (std::size_t i = 0; i < sampled_.size(); ++i) {
        if (op_of(i, call) == op) continue;
        loop_.varying_slots_.push_back(slot);
        break;
      }
    }
    for (std::uint32_t birth = 0; birth < body_births_.size(); ++birth) {
      const std::int64_t bytes = trace_.storages[body_births_[birth]].bytes;
      for (std::size_t i = 0; i < sampled_.size(); ++i) {
        if (bytes_of(i, birth) == bytes) continue;
        loop_.varying_births_.push_back(birth);
        break;
      }
    }
  }

  static TokenLoop::Terms terms_of(std::int64_t zero, std::int64_t one, std::int64_t two) {
    return {zero, one - zero, two - 2 * one + zero};
  }

  /// False where a token that was run has other sizes than the terms say.
  bool add_piece(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kPeriod = TokenLoop::kPeriod;
    const auto at = [](std::int64_t token, const SampledToken& sample) { return token < sample.number; };
    const std::size_t from =
        static_cast<std::size_t>(std::upper_bound(sampled_.begin(), sampled_.end(), begin - 1, at) - sampled_.begin());
    TokenLoop::Piece& piece = loop_.pieces_.emplace_back();
    piece.begin = begin;
    piece.end = end;
    piece.ops.resize(loop_.varying_slots_.size());
    piece.births.resize(loop_.varying_births_.size());
    const auto sample = [&](std::int64_t remainder, std::int64_t u) {  // the last there is
      while (begin + remainder + u * kPeriod >= end) --u;
      return from + static_cast<std::size_t>(remainder + u * kPeriod);
    };
    for (std::int64_t r = 0; r < std::min(kPeriod, end - begin); ++r) {
      const auto remainder = static_cast<std::size_t>(r);
      const std::size_t zero = sample(r, 0), one = sample(r, 1), two = sample(r, 2);
      const bool is_linear = two == one;
      const auto terms = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
        return terms_of(a, b, is_linear ? 2 * b - a : c);
      };
      for (std::size_t k = 0; k < loop_.varying_slots_.size(); ++k) {
        const std::size_t call = call_of_slot_[loop_.varying_slots_[k]];
        piece.ops[k].base[remainder] = op_of(zero, call);
        const std::vector<std::int64_t> a = numbers_of(op_of(zero, call)), b = numbers_of(op_of(one, call)),
                                        c = numbers_of(op_of(two, call));
        if (a.size() != b.size() || a.size() != c.size()) return false;
        for (std::size_t i = 0; i < a.size(); ++i) piece.ops[k].numbers[remainder].push_back(terms(a[i], b[i], c[i]));
      }
      for (std::size_t k = 0; k < loop_.varying_births_.size(); ++k) {
        const std::uint32_t birth = loop_.varying_births_[k];
        piece.births[k][remainder] = terms(bytes_of(zero, birth), bytes_of(one, birth), bytes_of(two, birth));
      }
    }
    for (std::size_t i = from; i < sampled_.size() && sampled_[i].number < end; ++i)
      if (!holds(i)) return false;
    return true;
  }
  [[nodiscard]] bool holds(std::size_t i) const {
    const std::int64_t token = sampled_[i].number;
    for (std::size_t k = 0; k < loop_.varying_slots_.size(); ++k)
      if (!(loop_.op(k, token) == op_of(i, call_of_slot_[loop_.varying_slots_[k]]))) return false;
    for (std::size_t k = 0; k < loop_.varying_births_.size(); ++k)
      if (loop_.bytes(k, token) != bytes_of(i, loop_.varying_births_[k])) return false;
    return true;
  }

  const OpTrace& trace_;
  const OpTrace& samples_;
  std::span<const SampledToken> sampled_;
  TokenLoop loop_;
  std::vector<std::uint32_t> body_calls_;
  std::vector<StorageId> body_births_;
  std::vector<std::vector<std::uint32_t>> calls_;  ///< of each sample
  std::vector<std::vector<StorageId>> births_;
  std::vector<std::size_t> call_of_slot_;  ///< the first of each
};

std::optional<TokenLoop> read_token_loop(const OpTrace& trace, std::vector<TokenLoop::Place> places,
                                         const OpTrace& samples, std::span<const SampledToken> sampled,
                                         std::int64_t first, std::span<const std::int64_t> ends,
                                         std::vector<std::size_t>& wrong) {
  return TokenLoopMaker(trace, samples, sampled).make(std::move(places), first, ends, wrong);
}

}  // namespace ridgeline
