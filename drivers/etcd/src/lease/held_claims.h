#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/loss_listeners.h"
#include "lockkeeper/driver/losses.h"

namespace lockkeeper::etcd {

/// The claims of this process that hold a lock, by their keys in the store, and those who want to hear when
/// one is gone. Thread-safe.
class HeldClaims {
 public:
  void addListener(std::weak_ptr<LossListener> listener) { listeners_.add(std::move(listener)); }

  /// Its lease runs from now on, for `length`. It is forgotten some time after the end unless kept() comes.
  void add(const std::string& key, const Token& token, std::int64_t created, Instant now,
           std::chrono::milliseconds length);

  /// Its lease runs from then on, for `length`.
  void kept(const std::string& key, Instant from, std::chrono::milliseconds length);

  /// The claim's create revision, if it is here.
  std::optional<std::int64_t> createdAt(const std::string& key) const;

  /// Its holder ends it, or has found out that it is gone.
  void remove(const std::string& key);

  /// The store has told that the key was removed at `revision`: the listeners hear of it if a claim of this
  /// process was there then.
  void lost(const std::string& key, std::int64_t revision);

 private:
  struct Held {
    Token token;
    std::int64_t created;
    Instant forgetAt;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Held, std::less<>> held_;
  std::size_t mostHeld_ = 0;  // then those are forgotten that nobody releases
  LossListeners listeners_;
};

}  // namespace lockkeeper::etcd
