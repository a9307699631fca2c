#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/leader_election.h"

namespace lockkeeper::detail {

/// What a LeaderElection is behind its pointer: campaigns, leads and steps down, on one thread. Held by
/// shared_ptr: a callback that hangs for ever keeps it. Thread-safe.
class Candidate : public std::enable_shared_from_this<Candidate> {
 public:
  Candidate(std::shared_ptr<LockManager> manager, ElectionOptions options, ElectionHooks hooks);

  void start();
  /// Ends the thread, or leaves it behind when a callback hangs.
  void stop();

  bool inherited() const noexcept { return forkGuard_.inherited(); }
  bool leads();
  std::optional<Fence> fence();
  bool resign(std::chrono::milliseconds pause);

 private:
  enum class Phase { campaigning, leading, ending, ended };
  using Guard = std::unique_lock<std::mutex>;
  using Callback = std::function<void(const Term& term)>;

  void run();
  bool rest();
  std::optional<Lock> campaign(Backoff& backoff);
  void serve(Lock won);
  void lead(const Term& term);
  void endTerm();
  bool call(const Callback& callback, const Term& term, const char* name);
  void reportLateness();
  bool awaitCallbacks(Guard& held, const std::function<bool()>& over);
  void releaseEarly(Guard& held, const char* who);
  bool inOwnCallback() const;
  void tell(EventKind kind, std::string_view text) const;
  void tellOfTerm(EventKind kind, std::optional<Fence> fence);
  Instant now() const noexcept { return environment_.clock->now(); }
  void wait(Guard& held, Instant until) { environment_.clock->wait(held, changed_, until); }

  const std::shared_ptr<LockManager> manager_;
  const ElectionOptions options_;
  const ElectionHooks hooks_;
  const Environment environment_;  // the manager's
  const ForkGuard forkGuard_;
  std::thread thread_;
  std::stop_source stopped_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id threadId_;
  std::thread::id endingThread_;  // which tells that a term has ended, while it does
  Phase phase_ = Phase::campaigning;
  std::optional<Lock> lock_;  // while a term lasts
  std::uint64_t terms_ = 0;
  std::stop_source termEnded_;
  Instant termBegan_{};
  Instant restsUntil_ = Instant::min();
  std::optional<Instant> callbackSince_;
  std::optional<Instant> lostAt_;  // of the present term
  bool finished_ = false;          // the thread
};

}  // namespace lockkeeper::detail
