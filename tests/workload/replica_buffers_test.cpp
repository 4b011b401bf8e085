// Buffers in which torch.nn.DataParallel sends parameters and adds up gradients, and where torch.compile cuts a graph
// of parameters that share storages.
#include <gtest/gtest.h>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/parallel/graph_split.h"
#include "sim/workload/parallel/replicas.h"
#include "tests/support/odd_networks.h"

namespace ridgeline::parallel {
namespace {

using testing_support::odd_composition;
using testing_support::OddStep;

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;

/// Parameters of so many megabytes each, in fp32, and what three devices do with them.
class DeviceCopies {
 public:
  explicit DeviceCopies(std::initializer_list<std::int64_t> megabytes) {
    for (const std::int64_t size : megabytes)
      parameters_.emplace_back().allocate(eager_, {size, kMegabyte / 4}, DType::fp32);
    replicas_.emplace(eager_, parameters_, 3);
  }
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  ~DeviceCopies() { eager_.recorder.closed = true; }

  /// Megabytes of each broadcast, and of each reduction.
  std::string sent() {
    eager_.recorder.phase = Phase::forward;
    replicas_->before_forward(eager_.empty({6, 4}, DType::int64));
    eager_.recorder.phase = Phase::backward;
    for (eager::Parameter& parameter : parameters_)
      parameter.gradient = eager_.empty(parameter.value.sizes, DType::fp32);
    replicas_->after_backward();
    std::string text;
    for (const Call& call : trace_.calls)
      if (const auto* one = std::get_if<Collective>(&trace_.ops[call.op]); one != nullptr && one->bytes >= kMegabyte)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(one->kind), one->bytes / kMegabyte);
    return text;
  }
  [[nodiscard]] const OpTrace& trace() const { return trace_; }
  eager::Parameters& parameters() { return parameters_; }

 private:
  OpTrace trace_;
  eager::Eager eager_{trace_};
  eager::Parameters parameters_;
  std::optional<Replicas> replicas_;
};

// 10 MiB: a broadcast is closed by what fills it, a reduction before it.
TEST(ReplicaBuffers, HoldTenMegabytes) {
  EXPECT_EQ(DeviceCopies({6, 4, 1}).sent(), "broadcast 10, broadcast 1, reduce 10, reduce 1");
  EXPECT_EQ(DeviceCopies({6, 5, 1}).sent(), "broadcast 11, broadcast 1, reduce 6, reduce 6");
  EXPECT_EQ(DeviceCopies({12, 3}).sent(), "broadcast 12, broadcast 3, reduce 12, reduce 3");
  EXPECT_EQ(DeviceCopies({3, 12}).sent(), "broadcast 15, reduce 3, reduce 12");
}

TEST(ReplicaBuffers, OneTensorIsSentFromWhereItLies) {
  const auto copied = [](DeviceCopies& copies) {
    copies.sent();
    std::int64_t copies_made = 0;
    for (const Call& call : copies.trace().calls)
      copies_made += std::holds_alternative<Copy>(copies.trace().ops[call.op]) ? 1 : 0;
    return copies_made;
  };
  DeviceCopies one({12}), two({4, 4}), three({4, 4, 12});
  EXPECT_EQ(copied(one), 0);
  EXPECT_EQ(copied(two), 2);    // into a buffer forward, and backward
  EXPECT_EQ(copied(three), 2);  // forward all three are one buffer; backward the last is alone
}

TEST(ReplicaBuffers, GradientsOfFurtherPassesAreAddedUp) {
  DeviceCopies copies({4, 3});
  copies.sent();
  const auto sums = [&] {
    std::int64_t additions = 0;
    for (const Call& call : copies.trace().calls) additions += name_of(copies.trace().ops[call.op]) == "add_" ? 1 : 0;
    return additions;
  };
  EXPECT_EQ(sums(), 0);
  copies.sent();
  EXPECT_EQ(sums(), 2);
  for (eager::Parameter& parameter : copies.parameters()) EXPECT_TRUE(parameter.gradient.defined());
}

// cuDNN plans once for each kind of attention: of an encoder, of a decoder, of a decoder looking at the encoder.
TEST(ReplicaBuffers, ThreadsPlanEachKindOfAttention) {
  const auto plans = [](AttentionChoice attention, const std::string& keys) {
    OddStep step(odd_composition(keys));
    step.attention = attention;
    step.training.parallel.data = 3;
    step.training.parallel.strategy = DataStrategy::dataparallel;
    return step.about({"thread_products"});
  };
  EXPECT_EQ(plans(AttentionChoice::flash, "layers: 2"), "\n");
  EXPECT_EQ(plans(AttentionChoice::cudnn, "layers: 2"), "\nthread_products x3\n");
  EXPECT_EQ(plans(AttentionChoice::cudnn, "cross_attention: true, target_length: 4, encoder: {layers: 2}"),
            "\nthread_products x9\n");
}

/// Products of a row with matrices one after the other, whose parameters lie as said.
class Chain {
 public:
  Chain() { eager_.recorder.phase = Phase::forward; }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain() { eager_.recorder.closed = true; }

  eager::Parameter& matrix(std::int64_t in, std::int64_t out) {
    eager::Parameter& made = parameters_.emplace_back();
    made.allocate(eager_, {in, out}, DType::fp32);
    return made;
  }
  /// Parts of the graph of a product with each: the operation they begin with and the parameters they are given;
  /// "<": what an earlier part made.
  std::string parts(const std::vector<std::size_t>& order, std::int64_t bucket_cap) {
    const std::uint32_t begin = eager_.recorder.position();
    std::vector<std::uint32_t> begins;
    eager::Tensor x = eager_.empty({2, parameters_[order.front()].value.sizes[0]}, DType::fp32);
    for (const std::size_t i : order) {
      begins.push_back(eager_.recorder.position());
      eager_.recorder.host(HostClass::linear);
      x = eager::aten::mm(eager_, x, parameters_[i].value);
    }
    std::string text;
    for (const GraphPart& part : split_graph(trace_, {begin, eager_.recorder.position()}, parameters_, bucket_cap)) {
      const auto at = std::find(begins.begin(), begins.end(), part.begin);
      text += fmt::format("{}{}:", text.empty() ? "" : " | ",
                          part.begin == begin ? "start" : std::to_string(at - begins.begin()));
      for (const std::size_t input : part.inputs)
        text += input == GraphPart::kEarlier ? " <" : " " + std::to_string(input);
    }
    return text;
  }
  void share_storages() {
    for (eager::Parameter& one : parameters_) one.value.storage = parameters_.front().value.storage;
  }

 private:
  OpTrace trace_;
  eager::Eager eager_{trace_};
  eager::Parameters parameters_;
};

// Matrices of 48, 48 and 60 bytes: from the last to the first, a part is closed when it holds as many as a bucket.
TEST(ReplicaBuffers, AGraphIsCutWhereBucketsAreFull) {
  for (const bool shared : {false, true}) {
    Chain chain;
    chain.matrix(3, 5), chain.matrix(5, 2), chain.matrix(2, 5);  // 60, 40 and 40 bytes
    if (shared) chain.share_storages();
    EXPECT_EQ(chain.parts({0, 1, 2}, 1000), "start: 0 1 2") << shared;
  }
  {
    Chain pair;
    pair.matrix(3, 4), pair.matrix(4, 3);
    pair.share_storages();
    EXPECT_EQ(pair.parts({0, 1}, 48), "start: 0 | 1: < 1");
  }
  Chain chain;
  chain.matrix(3, 4), chain.matrix(4, 3), chain.matrix(3, 5);
  EXPECT_EQ(chain.parts({0, 1, 2}, 60), "start: 0 1 | 2: < 2");
  EXPECT_EQ(chain.parts({0, 1, 2}, 61), "start: 0 | 1: < 1 2");
  EXPECT_EQ(chain.parts({0, 1, 2}, 48), "start: 0 | 1: < 1 | 2: < 2");
}

TEST(ReplicaBuffers, GradientsArriveAsAHeapOfEqualNodesGivesThem) {
  constexpr std::size_t kEarlier = GraphPart::kEarlier;
  const auto order = [](std::vector<std::size_t> inputs) {
    GraphPart part;
    part.inputs = std::move(inputs);
    return order_of_arrival(part);
  };
  using Order = std::vector<std::size_t>;
  EXPECT_EQ(order({}), Order{});
  EXPECT_EQ(order({kEarlier}), Order{});
  EXPECT_EQ(order({4, 7}), (Order{4, 7}));
  EXPECT_EQ(order({kEarlier, 4, 7}), (Order{4, 7}));
  EXPECT_EQ(order({4, 7, 9, 11}), (Order{4, 9, 7, 11}));  // of two equal children the right one comes up
}

}  // namespace
}  // namespace ridgeline::parallel
