#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "getlock/session/lock_session.h"
#include "hosts/session_opener.h"
#include "lockkeeper/base/loss_listeners.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::mysql {

/// The sessions of one driver, at most so many, and which name is held on which. A session holds leases of
/// one length only, since its wait_timeout is what ends them when its owner dies; of those, it takes a new
/// one while the others are young, since each statement keeps all of them. Thread-safe.
class LockSessions {
 public:
  /// `opener` must outlive this.
  LockSessions(SessionOpener& opener, std::size_t most) : opener_(opener), most_(most) {}

  /// The use of one session, by one thread at a time.
  class Use {
   public:
    Use(LockSessions& sessions, LockSession& session) : sessions_(&sessions), session_(&session) {}
    Use(Use&& other) noexcept
        : sessions_(other.sessions_), session_(std::exchange(other.session_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (session_ != nullptr) sessions_->putBack(*session_);
    }

    LockSession& operator*() const { return *session_; }
    LockSession* operator->() const { return session_; }

    /// Closes the session, which frees all that it holds. The last call.
    void close() { sessions_->close(*std::exchange(session_, nullptr)); }

   private:
    LockSessions* sessions_;
    LockSession* session_;
  };

  // All that have a `deadline` block until then, and the opening of a session besides; then they throw
  // StoreUnavailable. A session that they give may have a reply due.

  /// For a claim: the session that holds the name or has an unseen claim of the token; else one that may hold
  /// it. Busy while another token of this process holds it.
  std::variant<Use, Busy> forClaim(std::string_view name, const Token& token,
                                   std::chrono::seconds idleTimeout, Instant deadline);

  /// For a claim that waits on the server: a session that holds nothing. Empty when there is none, or half
  /// of all wait already.
  std::optional<Use> forWaiting(std::chrono::seconds idleTimeout, Instant deadline);

  /// The session that holds the name for the token or has its unseen claim; empty when there is none.
  std::optional<Use> holding(std::string_view name, const Token& token, Instant deadline);

  /// For a question about a name: the session that holds it, if its lease has ended; else any.
  Use forQuery(std::string_view name, Instant deadline);

  /// Whichever of these sessions is free; its Use is empty when it is gone. Empty when all are in use. Does
  /// not block and does not throw.
  std::optional<std::pair<LockSession*, std::optional<Use>>> takeAny(std::span<LockSession* const> wanted);

  /// Triggered as soon as a session is given back or gone, from now on.
  std::stop_token nextReturn();

  /// A copy of what is held under the name; `session` is for takeAny().
  std::optional<HeldName> heldUnder(std::string_view name);

  /// The server is not the primary any more: closes all sessions with it, those in use when they are given
  /// back. Their locks are lost at once.
  void retire(const ServerSession& server);

  /// Hears of the locks that end with their session.
  void addLossListener(std::weak_ptr<LossListener> listener) { lossListeners_.add(std::move(listener)); }

  // For whoever has the session in use.

  bool holds(const LockSession& session, std::string_view name, const Token& token);
  /// All that it holds.
  std::vector<std::string> names(const LockSession& session);
  void add(HeldName held);
  void remove(const LockSession& session, std::string_view name, const Token& token);
  /// Also when it is not in use; false when the session that the server counts as `sessionId` does not hold
  /// it any more.
  bool setFence(std::string_view name, const Token& token, std::uint64_t sessionId, Fence fence);
  /// The lease runs until `end` from now on; false when the session does not hold it.
  bool extend(const LockSession& session, std::string_view name, const Token& token, Instant end);
  /// The lease of whoever holds it ends now.
  void endLease(std::string_view name, const Token& token);
  void setUnseen(LockSession& session, std::optional<UnseenClaim> claim);
  /// Begins a batch that first frees all names whose leases have ended.
  void prepare(LockSession& session, std::chrono::seconds idleTimeout);

 private:
  // Better than to share a session is one that is open and holds nothing: its next statement waits for
  // nobody.
  enum class Fitness { none, crowded, good, empty, emptySameTimeout };
  using Lock = std::unique_lock<std::mutex>;
  using Names = StringMap<HeldName>;

  void putBack(LockSession& session);
  void close(LockSession& session);
  std::unique_ptr<LockSession> takeOut(LockSession& session);
  void loseAll(LockSession& session);
  template <class IsFormer>
  void retireAll(IsFormer isFormer);
  bool closeIfDead(LockSession& session);
  Fitness fitness(const LockSession& session, std::chrono::seconds idleTimeout, Instant time) const;
  LockSession* best(std::chrono::seconds idleTimeout, Fitness least, Fitness most);
  LockSession* owning(std::string_view name, const Token& token) const;
  Names::iterator find(const LockSession& session, std::string_view name, const Token& token);
  Use begin(LockSession& session);
  // Lets go of `held`. A session that is dead is closed, and nothing returned, with `held` locked again.
  std::optional<Use> tryBegin(Lock& held, LockSession& session);
  Use open(Lock& held, Instant deadline, bool waiting = false);
  bool full();
  void awaitReturn(Lock& held, Instant deadline);
  void notifyReturn(Lock& held);  // Unlocks.

  Instant now() const { return opener_.clock().now(); }
  const std::string& display() const { return opener_.display(); }

  SessionOpener& opener_;
  const std::size_t most_;

  LossListeners lossListeners_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::stop_source nextReturn_{std::nostopstate};  // The same for those who poll, while there are any.
  std::vector<std::unique_ptr<LockSession>> sessions_;
  Names names_;
};

}  // namespace lockkeeper::mysql
