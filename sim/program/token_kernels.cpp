#include "sim/program/token_kernels.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "sim/units/budget.h"

namespace ridgeline {

std::uint64_t hash_of_temporaries(const TokenKernels& kernels) {
  std::uint64_t hash = kernels.slots;
  for (const std::shared_ptr<const LoweredOp>& op : kernels.varying)
    for (const std::int64_t bytes : op->temporaries)
      hash = (hash ^ static_cast<std::uint64_t>(bytes)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  return hash;
}

void beside_each_other(std::int64_t count, const std::function<void(std::size_t, std::int64_t, std::int64_t)>& work) {
  const std::int64_t parts = (count + kTokensOfPart - 1) / kTokensOfPart;
  std::atomic<std::int64_t> next{0};
  const auto run = [&] {
    for (std::int64_t part = next++; part < parts; part = next++)
      work(static_cast<std::size_t>(part), part * kTokensOfPart, std::min(count, (part + 1) * kTokensOfPart));
  };
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> others;
  for (std::int64_t i = 1; i < std::min(cores, parts); ++i)
    others.push_back(std::async(std::launch::async, with_same_budget(run)));
  run();
  for (auto& other : others) other.get();
}

std::shared_ptr<const TokenKernels> lower_tokens(const TokenLoop& loop,
                                                 const std::function<LoweredOp(const Op&)>& lower) {
  auto made = std::make_shared<TokenKernels>();
  made->slots = loop.varying_slots().size();
  made->varying.resize(static_cast<std::size_t>(loop.tokens()) * made->slots);
  beside_each_other(loop.tokens(), [&](std::size_t, std::int64_t begin, std::int64_t end) {
    for (std::size_t slot = 0; slot < made->slots; ++slot) {
      Op before;
      for (std::int64_t token = begin; token < end; ++token) {
        keep_budget_often("choosing kernels");
        std::shared_ptr<const LoweredOp>& kernels = made->varying[static_cast<std::size_t>(token) * made->slots + slot];
        Op op = loop.op(slot, loop.first + token);
        if (token > begin && op == before)
          kernels = made->varying[static_cast<std::size_t>(token - 1) * made->slots + slot];
        else kernels = std::make_shared<const LoweredOp>(lower(op));
        before = std::move(op);
      }
    }
  });
  return made;
}

}  // namespace ridgeline
