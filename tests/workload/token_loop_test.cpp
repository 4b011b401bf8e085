// Tokens that are not written out have the operations and sizes of those that are.
#include "sim/workload/token_loop.h"

#include <gtest/gtest.h>

#include <random>

#include "sim/workload/inference_run.h"

namespace ridgeline {
namespace {

struct Generation {
  ModelDescription model;
  TrainingDescription how;
};

Generation random_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  Generation made;
  ModelDescription& m = made.model;
  m.family = random() % 2 == 0 ? ModelFamily::llama : ModelFamily::gpt2;
  m.layers = one_of({1, 2, 3, 5});
  m.heads = one_of({2, 4, 8});
  m.key_value_heads = m.family == ModelFamily::llama ? one_of({1, 2}) : 0;
  m.hidden = m.heads * one_of({16, 64});
  m.feed_forward = one_of({128, 344, 1024});
  m.vocabulary = one_of({100, 1001, 32000});
  m.max_positions = 4096;
  TrainingDescription& t = made.how;
  InferenceDescription& use = t.inference.emplace();
  use.sequences = one_of({1, 2, 3});
  use.beams = random() % 3 == 0 ? one_of({2, 4}) : 1;
  use.new_tokens = one_of({65, 66, 80, 100, 131, 200});
  use.cache = random() % 2 == 0 ? KeyValueCache::none : KeyValueCache::dynamic;
  t.micro_batch = use.sequences * use.beams;
  t.sequence_length = one_of({1, 7, 16, 100, 500});
  t.precision = random() % 2 == 0 ? Precision::bf16 : Precision::fp32;
  return made;
}

std::string text_of(const Generation& c) {
  const InferenceDescription& use = *c.how.inference;
  return "layers " + std::to_string(c.model.layers) + ", tokens " + std::to_string(use.new_tokens) + ", prompt " +
         std::to_string(c.how.sequence_length) + ", cache " + std::to_string(static_cast<int>(use.cache)) + ", beams " +
         std::to_string(use.beams);
}

/// Records of the tokens of a step: each begins with Python's work for it.
std::vector<StepRange> tokens_of(const OpTrace& trace, StepRange step, std::int64_t count) {
  std::vector<StepRange> tokens;
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::host || record.host_class != HostClass::python_fixed || record.index != 568)
      continue;
    if (!tokens.empty()) tokens.back().end = i;
    tokens.push_back({i, i});
  }
  EXPECT_EQ(static_cast<std::int64_t>(tokens.size()), count);
  return tokens;  // the last has no end
}

void expect_equal(const Generation& c, AttentionChoice attention) {
  SCOPED_TRACE(text_of(c));
  const OpTrace looped = inference_run(c.model, c.how, attention);
  const OpTrace whole = inference_run(c.model, c.how, attention, 2, Tokens::written_out);
  ASSERT_NE(looped.tokens, nullptr);
  const TokenLoop& loop = *looped.tokens;
  EXPECT_EQ(looped.model_flops, whole.model_flops);
  const StepRange body = loop.places.back().body;
  for (const StepRange step : whole.steps) {
    const std::vector<StepRange> tokens = tokens_of(whole, step, c.how.inference->new_tokens);
    for (std::int64_t token = loop.first; token < loop.end; ++token) {
      const std::uint32_t begin = tokens[static_cast<std::size_t>(token)].begin;
      std::size_t call = 0, birth = 0, birth_at = 0;
      std::vector<Op> ops(loop.varying_slots().size());
      for (std::size_t k = 0; k < ops.size(); ++k) ops[k] = loop.op(k, token);
      for (std::uint32_t i = 0; i < body.end - body.begin; ++i) {
        const Record &one = looped.records[body.begin + i], &other = whole.records[begin + i];
        ASSERT_EQ(one.kind, other.kind) << token;
        if (one.kind == Record::Kind::host) {
          ASSERT_EQ(one.index, other.index);
        }
        if (one.kind == Record::Kind::allocate) {
          std::int64_t bytes = looped.storages[one.index].bytes;
          const auto& varying = loop.varying_births();
          if (birth_at < varying.size() && varying[birth_at] == birth) bytes = loop.bytes(birth_at++, token);
          ASSERT_EQ(bytes, whole.storages[other.index].bytes) << "token " << token << " birth " << birth;
          ++birth;
        }
        if (one.kind == Record::Kind::op) {
          const auto& varying = loop.varying_slots();
          const std::uint32_t slot = loop.slots[call++];
          const auto found = std::lower_bound(varying.begin(), varying.end(), slot);
          const bool varies = found != varying.end() && *found == slot;
          const Op& op =
              varies ? ops[static_cast<std::size_t>(found - varying.begin())] : looped.ops[looped.calls[one.index].op];
          ASSERT_TRUE(op == whole.ops[whole.calls[other.index].op])
              << "token " << token << ": " << name_of(op) << " " << shape_of(op) << ", not "
              << shape_of(whole.ops[whole.calls[other.index].op]);
        }
      }
    }
  }
}

TEST(TokenLoop, HasTheOperationsAndSizesOfEveryToken) {
  for (unsigned seed = 1; seed <= 24; ++seed) expect_equal(random_case(seed), static_cast<AttentionChoice>(seed % 5));
}

TEST(TokenLoop, AFewTokensAreWrittenOut) {
  Generation c = random_case(1);
  c.how.inference->new_tokens = 20;
  EXPECT_EQ(inference_run(c.model, c.how, AttentionChoice::flash).tokens, nullptr);
}

TEST(TokenLoop, HoldsAsLittleForManyTokensAsForFew) {
  Generation c = random_case(1);
  c.how.inference->new_tokens = 3000;
  const OpTrace trace = inference_run(c.model, c.how, AttentionChoice::flash);
  ASSERT_NE(trace.tokens, nullptr);
  c.how.inference->new_tokens = 100;
  EXPECT_EQ(trace.records.size(), inference_run(c.model, c.how, AttentionChoice::flash).records.size());
}

}  // namespace
}  // namespace ridgeline
