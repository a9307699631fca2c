#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "operation.h"

namespace lockkeeper::test {

/// How long attempts may take while the server is frozen.
constexpr std::chrono::milliseconds attemptTime{200};

/// A store whose server can be stopped by SIGSTOP: connections stay, nothing is answered.
struct FreezableStore {
  std::function<std::shared_ptr<LockDriver>()> open;  ///< With short timeouts.
  std::chrono::milliseconds timeouts;                 ///< How much later than its deadline a call may return.
  std::shared_ptr<LockDriver> direct;
  std::function<bool(const std::string& key)> isFree;
  std::function<void()> freeze;
  std::function<void()> thaw;
};

/// Of one that has a `server`, such as VersionStore; it must outlive the result.
template <class Store>
FreezableStore freezable(Store& store, const std::string& shortTimeouts, std::chrono::milliseconds timeouts) {
  return {.open = [&store, shortTimeouts] { return store.open(shortTimeouts); },
          .timeouts = timeouts,
          .direct = store.direct,
          .isFree = [&store](const std::string& key) { return store.isFree(key); },
          .freeze = [&store] { store.server.pause(); },
          .thaw = [&store] { store.server.resume(); }};
}

// What is asked of every driver; each is the body of a test.

/// Every call returns by its deadline, says what may have been done, and leaves nothing behind.
void freezeDuring(const Operation& operation, const FreezableStore& store);

/// All of many threads return by their deadlines, and go on after each freeze.
void freezeUnderLoad(const FreezableStore& store);

/// A claim that a manager has given up while the server was frozen does not keep the key.
void freezeBeforeAClaim(const FreezableStore& store);

/// A holder is told of its loss before its lease ends.
void freezeUnderAHolder(const FreezableStore& store);

}  // namespace lockkeeper::test
