// The keys and values of earlier tokens, by layer: 2 x rows x heads x tokens x head dimension elements each.
//
// A dynamic cache joins old and new into a fresh tensor, so that for a moment both lie on the device; a fixed one
// writes new rows into a tensor that was made for the longest sequence. A beam search gathers the rows of the
// candidates that go on into fresh tensors, layer by layer. After Transformers 5.17, cache_utils.py.
#pragma once

#include <utility>
#include <vector>

#include "sim/workload/eager/eager.h"
#include "sim/workload/inference.h"

namespace ridgeline::families {

class KeyValueStore {
 public:
  /// `most_tokens`: prompt and everything generated but the last token, which is never run.
  KeyValueStore(eager::Eager& eager, KeyValueCache kind, std::int64_t layers, std::int64_t most_tokens)
      : eager_(eager), kind_(kind), most_tokens_(most_tokens), layers_(static_cast<std::size_t>(layers)) {}
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;
  ~KeyValueStore() { clear(); }

  /// Takes keys and values [rows, heads, new tokens, head dimension] of a layer; gives all there are.
  std::pair<eager::Tensor, eager::Tensor> update(std::int16_t layer, const eager::Tensor& keys,
                                                 const eager::Tensor& values);
  /// Acts as if so many tokens more had been taken.
  void lengthen(std::int64_t tokens) {
    for (Layer& layer : layers_)
      for (eager::Tensor* kept : {&layer.keys, &layer.values})
        if (kind_ == KeyValueCache::dynamic && kept->defined()) kept->lengthen(2, tokens);
  }
  /// Every layer's rows in another order.
  void reorder();
  void clear();
  /// Tokens a query looks at when `tokens` are there: all of a fixed cache, behind a mask.
  [[nodiscard]] std::int64_t visible(std::int64_t tokens) const {
    return kind_ == KeyValueCache::fixed ? most_tokens_ : tokens;
  }
  [[nodiscard]] bool fixed() const { return kind_ == KeyValueCache::fixed; }

 private:
  struct Layer {
    eager::Tensor keys, values;
  };
  eager::Tensor joined(const eager::Tensor& old, const eager::Tensor& fresh);
  void write(eager::Tensor& whole, const eager::Tensor& fresh);
  /// What the cache gives up was kept, not a temporary of the forward pass.
  void replace(eager::Tensor& old, eager::Tensor fresh);

  eager::Eager& eager_;
  KeyValueCache kind_;
  std::int64_t most_tokens_;
  std::vector<Layer> layers_;
};

}  // namespace ridgeline::families
