#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "queue_look.h"

namespace lockkeeper::test {

/// What happens to a store while processes use it.
struct StoreFault {
  std::string name;
  std::function<void()> begin;
  std::chrono::milliseconds length{0};
  std::function<void()> end = [] {};
  /// Whether it has met anybody.
  std::function<bool()> hit = [] { return true; };
};

/// A real store, and the faults that must not break what it promises (docs/guarantees.md).
struct FaultyStore {
  std::function<std::string(const std::string& process)> uri;
  bool fences;
  std::vector<StoreFault> faults;
  std::shared_ptr<void> servers;  ///< That the faults are about.
  QueueLook queues = nullptr;     ///< Of a store that serves those who wait in their order.
};

/// A kind of store that histories are made on.
struct StoreKind {
  const char* name;
  FaultyStore (*start)();
};
std::span<const StoreKind> storeKinds();

}  // namespace lockkeeper::test
