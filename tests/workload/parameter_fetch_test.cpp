// Which parameters ZeRO's stage 3 gathers when, and when it gives them back: A of 2 numbers, B of 4, C of 8 and so on,
// over two ranks, so that the size of a gather says what is in it.
#include "sim/workload/deepspeed/parameter_fetch.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/deepspeed/share_update.h"

namespace ridgeline {
namespace {

/// One parameter of a network.
struct Given {
  bool matrix = true;
  std::uint16_t module = 0;  ///< 0: one of its own
};

ZeroOptimization fetching(std::int64_t prefetch = 0, std::int64_t reuse = 0, std::int64_t persistent = 0) {
  ZeroOptimization zero;
  zero.prefetch_bucket_size = prefetch;
  zero.max_reuse_distance = reuse;
  zero.param_persistence_threshold = persistent;
  return zero;
}

class FetchSession {
 public:
  explicit FetchSession(ZeroOptimization zero, const std::vector<Given>& given = {{}, {}, {}, {}}) : zero_(zero) {
    eager_.gradients_enabled = false;
    std::vector<StorageId> whole;
    for (const Given& one : given) {
      const std::int64_t elements = 2 << parameters_.size();
      eager::Parameter& parameter = parameters_.emplace_back();
      parameter.value = eager_.empty(one.matrix ? eager::Dims{2, elements / 2} : eager::Dims{elements}, DType::bf16);
      parameter.accumulate.module = one.module > 0 ? one.module : static_cast<std::uint16_t>(100 + parameters_.size());
      whole.push_back(parameter.value.storage.id());
      eager_.recorder.set_category(whole.back(), Category::weights);
    }
    eager_.recorder.never_allocated(whole);
    shards_ = eager_.empty({(2 << parameters_.size()) / 2 - 1}, DType::bf16);
    group_.emplace(eager_, GroupKind::shard, 2, "gathers");
    fetch_.emplace(eager_, parameters_, zero_, *group_, shards_);
  }
  FetchSession(const FetchSession&) = delete;
  FetchSession& operator=(const FetchSession&) = delete;
  ~FetchSession() {
    fetch_.reset();
    eager_.recorder.closed = true;
  }

  /// "ABC|CBA": what is used one after the other, forward and backward.
  std::string pass(const std::string& uses) {
    return log([&] {
      fetch_->watch(true);
      fetch_->begin_pass();
      for (const char use : uses) {
        if (use == '|') {
          fetch_->end_visit();
          marks_.push_back({eager_.recorder.position(), "|"});
          continue;
        }
        const eager::Tensor result = eager_.empty({1}, DType::fp64);
        const eager::Tensor& value = parameters_[static_cast<std::size_t>(use - 'A')].value;
        eager::aten::pointwise(eager_, PointwiseFunction::scale, {&value}, result);
      }
      fetch_->end_visit();
      fetch_->watch(false);
    });
  }
  /// "+AB" gathers, "A" uses, "-A" gives back.
  template <typename Act>
  std::string log(Act act) {
    const std::uint32_t begin = eager_.recorder.position();
    marks_.clear();
    act();
    std::string text;
    for (std::uint32_t i = begin; i <= trace_.records.size(); ++i) {
      for (const auto& [at, mark] : marks_)
        if (at == i) text += " " + mark;
      if (i < trace_.records.size()) text += words(trace_.records[i]);
    }
    return text.empty() ? text : text.substr(1);
  }
  deepspeed::ParameterFetch& fetch() { return *fetch_; }

 private:
  [[nodiscard]] std::string named(std::int64_t elements) const {
    std::string names;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if ((elements & (2 << i)) != 0) names += static_cast<char>('A' + i);
    return names;
  }
  [[nodiscard]] std::string words(const Record& record) const {
    const auto elements_of = [&](StorageId storage) { return trace_.storages[storage].bytes / 2; };
    if (record.kind == Record::Kind::free) {
      const std::int64_t elements = elements_of(record.index);
      const bool single = (elements & (elements - 1)) == 0;  // a buffer of several is not told
      return single && elements > 1 && trace_.storages[record.index].category != Category::temporaries
                 ? " -" + named(elements)
                 : "";
    }
    if (record.kind != Record::Kind::op) return "";
    const Call& call = trace_.calls[record.index];
    if (const auto* sent = std::get_if<Collective>(&trace_.ops[call.op])) return " +" + named(sent->bytes / 2);
    if (std::holds_alternative<Pointwise>(trace_.ops[call.op]))
      return " " + named(elements_of(trace_.operands[call.operands_begin].storage));
    return "";
  }

  OpTrace trace_;
  eager::Eager eager_{trace_};
  eager::Parameters parameters_;
  ZeroOptimization zero_;
  eager::Tensor shards_;
  std::optional<parallel::ProcessGroup> group_;
  std::optional<deepspeed::ParameterFetch> fetch_;
  std::vector<std::pair<std::uint32_t, std::string>> marks_;
};

TEST(ParameterFetch, TheFirstPassGathersEachLeafAndGivesItBack) {
  FetchSession session(fetching(1000, 1000, 1000));
  EXPECT_EQ(session.pass("AABCD|DCBBA"), "+A A A -A +B B -B +C C -C +D D -D | +D D -D +C C -C +B B B -B +A A -A");
}

// Nothing ahead, nothing kept: the second pass is as the first.
TEST(ParameterFetch, WithoutPrefetchAndReuseEveryPassDoesTheSame) {
  FetchSession session(fetching());
  const std::string first = session.pass("ABCD|DCBA");
  EXPECT_EQ(first, "+A A -A +B B -B +C C -C +D D -D | +D D -D +C C -C +B B -B +A A -A");
  EXPECT_EQ(session.pass("ABCD|DCBA"), first);
  EXPECT_EQ(session.pass("ABCD|DCBA"), first);
}

// Up to the limit or one parameter past it at each leaf: B and C, 12 numbers; then D, 16; then, from the backward
// pass, D and C, which are there, and B and A. C is kept for its use to come; D is not, for that use is the next step.
TEST(ParameterFetch, FromTheSecondPassOnGathersAheadInTheOrderOfTheFirst) {
  FetchSession session(fetching(12));
  session.pass("ABCD|DCBA");
  const std::string second = "+A +BC A -A +D B -B +AB C D -D | +D D -D C -C B -B A -A";
  EXPECT_EQ(session.pass("ABCD|DCBA"), second);
  EXPECT_EQ(session.pass("ABCD|DCBA"), second);
}
TEST(ParameterFetch, ALimitIsReachedByTheParameterThatPassesIt) {
  const auto ahead = [](std::int64_t limit) {
    FetchSession session(fetching(limit));
    session.pass("ABCD|DCBA");
    const std::string text = session.pass("ABCD|DCBA");
    return text.substr(0, text.find(" -A"));
  };
  EXPECT_EQ(ahead(0), "+A A");
  EXPECT_EQ(ahead(1), "+A +B A");
  EXPECT_EQ(ahead(4), "+A +B A");
  EXPECT_EQ(ahead(5), "+A +BC A");
  EXPECT_EQ(ahead(12), "+A +BC A");
  EXPECT_EQ(ahead(13), "+A +BCD A");
  EXPECT_EQ(ahead(1000), "+A +BCD A B C D -D | +D D -D C -C B -B A");  // the backward pass's A, too, is passed at once
}

// 2 numbers are whole at A: so many fewer than the limit may be gathered ahead.
TEST(ParameterFetch, NoMoreIsGatheredAheadThanMayLive) {
  const auto ahead = [](std::int64_t most) {
    ZeroOptimization zero = fetching(1000);
    zero.max_live_parameters = most;
    FetchSession session(zero);
    session.pass("ABCD|DCBA");
    return session.pass("ABCD|DCBA");
  };
  EXPECT_EQ(ahead(2), "+A A -A +B B -B +C C -C +D D -D | +D D -D +C C -C +B B -B +A A -A");
  EXPECT_EQ(ahead(3).substr(0, 7), "+A +B A");
  EXPECT_EQ(ahead(6).substr(0, 7), "+A +B A");
  EXPECT_EQ(ahead(7).substr(0, 8), "+A +BC A");
}

// From the visit behind D on pass: D itself at once; from behind C: D and D, 32, before C; from behind B: C, D, D and
// C, 48, before B; from behind A: 56 before A.
TEST(ParameterFetch, WhatIsUsedAgainWithinADistanceIsKept) {
  const auto with = [](std::int64_t distance) {
    FetchSession session(fetching(0, distance));
    session.pass("ABCD|DCBA");
    const std::string second = session.pass("ABCD|DCBA");
    EXPECT_EQ(session.pass("ABCD|DCBA"), second);
    return second;
  };
  EXPECT_EQ(with(0), "+A A -A +B B -B +C C -C +D D -D | +D D -D +C C -C +B B -B +A A -A");
  const std::string last = "+A A -A +B B -B +C C -C +D D | D -D +C C -C +B B -B +A A -A";
  EXPECT_EQ(with(1), last);
  EXPECT_EQ(with(32), last);
  const std::string two = "+A A -A +B B -B +C C +D D | D -D C -C +B B -B +A A -A";
  EXPECT_EQ(with(33), two);
  EXPECT_EQ(with(48), two);
  const std::string three = "+A A -A +B B +C C +D D | D -D C -C B -B +A A -A";
  EXPECT_EQ(with(49), three);
  EXPECT_EQ(with(56), three);
  EXPECT_EQ(with(57), "+A A +B B +C C +D D | D -D C -C B -B A -A");
}

// A and B are no larger than the threshold: once gathered they stay, and after an update each is gathered by itself.
TEST(ParameterFetch, SmallParametersStayFromTheSecondPassOn) {
  FetchSession session(fetching(0, 0, 4));
  EXPECT_EQ(session.pass("ABCD|DCBA"), "+A A -A +B B -B +C C -C +D D -D | +D D -D +C C -C +B B -B +A A -A");
  EXPECT_EQ(session.pass("ABCD|DCBA"), "+A A +B B +C C -C +D D -D | +D D -D +C C -C B A");
  EXPECT_EQ(session.log([&] { session.fetch().release_all(); }), "-A -B");
  EXPECT_EQ(session.log([&] { session.fetch().gather_persistent(); }), "+A +B");
  EXPECT_EQ(session.pass("ABCD|DCBA"), "A B +C C -C +D D -D | +D D -D +C C -C B A");
  FetchSession none(fetching());
  EXPECT_EQ(none.log([&] { none.fetch().gather_persistent(); }), "");
}

// What was gathered ahead and not used is waited for when the next pass begins or all is given back.
TEST(ParameterFetch, WhatWasGatheredInVainIsGivenBack) {
  FetchSession session(fetching(1000));
  session.pass("ABCD|DCBA");
  EXPECT_EQ(session.pass("A|"), "+A +BCD A |");
  EXPECT_EQ(session.log([&] { session.fetch().begin_pass(); }), "");
  EXPECT_EQ(session.log([&] { session.fetch().release_all(); }), "-A -B -C -D");
}

// A matrix takes one vector behind it of the same part of the network, a vector another one.
TEST(ParameterFetch, LayersNormsAndTablesAreLeaves) {
  const auto leaves = [](const std::vector<Given>& given) {
    FetchSession session(fetching(), given);
    std::string uses;
    for (std::size_t i = 0; i < given.size(); ++i) uses += static_cast<char>('A' + i);
    std::istringstream words(session.pass(uses));
    std::string gathered, word;
    while (words >> word)
      if (word[0] == '+') gathered += (gathered.empty() ? "" : " ") + word.substr(1);
    return gathered;
  };
  const Given matrix{true, 1}, vector{false, 1}, other_matrix{true, 2}, other_vector{false, 2};
  EXPECT_EQ(leaves({matrix, vector}), "AB");
  EXPECT_EQ(leaves({matrix, vector, vector}), "AB C");
  EXPECT_EQ(leaves({matrix, vector, vector, vector}), "AB CD");
  EXPECT_EQ(leaves({vector, vector, vector, vector, vector}), "AB CD E");
  EXPECT_EQ(leaves({matrix, matrix, vector}), "A BC");
  EXPECT_EQ(leaves({vector, matrix, vector}), "A BC");
  EXPECT_EQ(leaves({matrix, other_vector, vector}), "A B C");
  EXPECT_EQ(leaves({vector, other_vector, other_matrix}), "A B C");
  EXPECT_EQ(leaves({matrix, vector, other_matrix, other_vector}), "AB CD");
}

}  // namespace
}  // namespace ridgeline
