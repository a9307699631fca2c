#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/testing/history/record.h"

namespace lockkeeper::testing::history {

/// Makes a history of what a program does. Each record goes to `sink`: to a History, or, as a line of
/// toJson(), to a file that is there when the process is killed. Thread-safe; calls of the sink never
/// overlap.
class Recorder {
 public:
  /// Takes each record, in the order of time.
  using Sink = std::function<void(const Record&)>;

  /// `clock` tells the time for all processes of the history.
  explicit Recorder(Sink sink, std::shared_ptr<Clock> clock = systemClock())
      : sink_(std::move(sink)), clock_(std::move(clock)) {}

  /// Records a call that begins, or what is no call: anything. The time is now. Returns the call's id, which
  /// is new unless the record has one.
  std::uint64_t record(Record record) {
    const std::lock_guard guard(mutex_);
    if (record.id == 0) record.id = ++lastId_;
    record.time = now();
    sink_(record);
    return record.id;
  }

  /// The clock's time, in nanoseconds.
  std::int64_t now() const { return clock_->now().time_since_epoch().count(); }

 private:
  Sink sink_;
  std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::uint64_t lastId_ = 0;
};

/// A lock that is taken from a manager, and recorded: the call, what came of it, its loss, and its release.
/// The recorder must outlive it, and the manager's locks. One thread at a time.
class RecordedLock {
 public:
  /// As LockManager::tryLock(), or tryLockShared() with Kind::shared, in the name of `process`. `within` is
  /// how long the call may take.
  static std::optional<RecordedLock> tryLock(Recorder& recorder, const std::string& process,
                                             LockManager& manager, const std::string& key,
                                             const LockOptions& options = {}, Kind kind = Kind::exclusive,
                                             std::optional<std::chrono::nanoseconds> within = {}) {
    Record call{.process = process, .operation = Operation::lock, .key = key, .kind = kind};
    if (within) call.within = within->count();
    return tryToTake(recorder, std::move(call), [&] {
      return kind == Kind::shared ? manager.tryLockShared(key, options) : manager.tryLock(key, options);
    });
  }

  /// The same for anything else that gives a lock, such as Semaphore::tryAcquire(): `call` says who takes
  /// what, and `take` returns the lock, or nothing.
  template <class Take>
  static std::optional<RecordedLock> tryToTake(Recorder& recorder, Record call, Take&& take) {
    call.id = recorder.record(call);
    try {
      std::optional<Lock> lock = take();
      if (lock) return RecordedLock(recorder, call.process, call.id, std::move(*lock));
      call.phase = Phase::fail;
    } catch (const StoreUnavailable&) {
      call.phase = Phase::fail;
      recorder.record(call);
      throw;
    } catch (...) {
      call.phase = Phase::unknown;
      recorder.record(call);
      throw;
    }
    recorder.record(call);
    return std::nullopt;
  }

  /// The other one records nothing any more.
  RecordedLock(RecordedLock&&) noexcept = default;
  RecordedLock& operator=(RecordedLock&&) = delete;
  /// Releases, as ~Lock does.
  ~RecordedLock() {
    if (held_)
      end([this] {
        held_->lock = {};
        return Phase::ok;
      });
  }

  /// The lock, until it is released.
  const Lock& lock() const noexcept { return held_->lock; }
  /// The grant, for records of reads and writes.
  std::uint64_t id() const noexcept { return held_->grant; }

  /// Records until when the process believes to have the lock, which the manager renews. Call it before
  /// each use of what is locked, so that the history knows of each renewal before the process may die.
  void recordBelief() const {
    Record call{.process = held_->process, .operation = Operation::renew, .grant = held_->grant};
    call.id = held_->recorder.record(call);
    call.phase = Phase::ok;
    call.until = until(held_->recorder, held_->lock);
    held_->recorder.record(call);
  }

  /// As Lock::release().
  ReleaseResult release() {
    ReleaseResult result = ReleaseResult::notHeld;
    end([&] {
      result = held_->lock.release();
      return result == ReleaseResult::released                                          ? Phase::ok
             : result == ReleaseResult::unknown || result == ReleaseResult::unavailable ? Phase::unknown
                                                                                        : Phase::fail;
    });
    return result;
  }

 private:
  struct Held {
    Recorder& recorder;
    std::string process;
    std::uint64_t grant;
    Lock lock;
    std::optional<std::stop_callback<std::function<void()>>> loss{};
  };

  RecordedLock(Recorder& recorder, const std::string& process, std::uint64_t grant, Lock lock)
      : held_(new Held{recorder, process, grant, std::move(lock)}) {
    recorder.record({.phase = Phase::ok,
                     .process = process,
                     .id = grant,
                     .fence = held_->lock.fence(),
                     .until = until(recorder, held_->lock)});
    held_->loss.emplace(held_->lock.lost(), [&recorder, process, grant] {
      recorder.record({.phase = Phase::lost, .process = process, .id = grant});
    });
  }

  // Not later than it is: the time first.
  static std::int64_t until(const Recorder& recorder, const Lock& lock) {
    const std::int64_t now = recorder.now();
    return now + lock.remaining().count();
  }

  template <class Release>
  void end(Release release) {
    Record call{.process = held_->process, .operation = Operation::release, .grant = held_->grant};
    call.id = held_->recorder.record(call);
    held_->loss.reset();
    call.phase = release();
    held_->recorder.record(call);
    held_.reset();
  }

  std::unique_ptr<Held> held_;
};

}  // namespace lockkeeper::testing::history
