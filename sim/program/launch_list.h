// The launches of a program, each different one once. Those of lowered operations belong to whoever lowered them:
// programs of one GPU share them, none is copied.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/launch/kernel_launch.h"

namespace ridgeline {

class LaunchList {
 public:
  class Iterator {
   public:
    explicit Iterator(const KernelLaunch* const* at) : at_(at) {}
    const KernelLaunch& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const KernelLaunch* const* at_;
  };

  /// Launches that live as long as `owner`.
  void share(std::shared_ptr<const void> owner, std::span<const KernelLaunch> launches) {
    for (const KernelLaunch& launch : launches) launches_.push_back(&launch);
    owners_.push_back(std::move(owner));
  }
  void push_back(KernelLaunch launch) {
    auto own = std::make_shared<const KernelLaunch>(std::move(launch));
    launches_.push_back(own.get());
    owners_.push_back(std::move(own));
  }
  /// A launch in the place of another; programs that share the other one keep it.
  void replace(std::size_t index, KernelLaunch by) {
    auto own = std::make_shared<const KernelLaunch>(std::move(by));
    launches_[index] = own.get();
    owners_.push_back(std::move(own));
  }

  const KernelLaunch& operator[](std::size_t index) const { return *launches_[index]; }
  [[nodiscard]] std::size_t size() const { return launches_.size(); }
  [[nodiscard]] bool empty() const { return launches_.empty(); }
  [[nodiscard]] Iterator begin() const { return Iterator(launches_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(launches_.data() + launches_.size()); }

 private:
  std::vector<const KernelLaunch*> launches_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace ridgeline
