#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "journal.h"
#include "lockkeeper/lock_manager.h"
#include "process.h"
#include "redis_fixture.h"
#include "temp_folder.h"

namespace lockkeeper::test {

/// A server, the lock "k" on it, and those who wait for that in its queue.
class RedisQueueTest : public RedisFaultTest {
 protected:
  /// One who waits on a thread of its own, through a manager of its own, as another process does.
  struct Member {
    std::unique_ptr<LockManager> manager;
    std::future<std::optional<Lock>> lock;

    /// Fails the test when it has not come after so long.
    std::optional<Lock> take(std::chrono::milliseconds bound = std::chrono::seconds{20}) {
      if (lock.wait_for(bound) != std::future_status::ready) {
        ADD_FAILURE() << "it still waits";
        manager->stop();
      }
      return lock.get();
    }
  };

  Member wait(const std::string& query = "",
              std::chrono::milliseconds length = std::chrono::minutes{1}) const {
    return waitAt(openRedis(server.port(), query), length);
  }
  Member waitAt(std::shared_ptr<LockDriver> driver,
                std::chrono::milliseconds length = std::chrono::minutes{1}) const {
    return waitAs({.waitFor = length}, std::move(driver));
  }
  Member waitAs(const LockOptions& options, std::shared_ptr<LockDriver> driver) const {
    Member member{std::make_unique<LockManager>(std::move(driver)), {}};
    member.lock = std::async(std::launch::async,
                             [&manager = *member.manager, options] { return manager.tryLock("k", options); });
    return member;
  }

  /// Another process that waits for it, once; it journals what it does.
  Process process(const std::string& name, int turns = 1, std::chrono::milliseconds hold = {},
                  std::chrono::milliseconds ttl = std::chrono::seconds{2}) const {
    return Process({QUEUE_MEMBER, std::to_string(server.port()), journalPath(), name, std::to_string(turns),
                    std::to_string(hold.count()), std::to_string(ttl.count())});
  }
  void addToJournal(const std::string& line) const { Journal(journalPath()).add(line); }
  std::vector<std::string> journal() const { return Journal(journalPath()).lines(); }
  bool journaled(const std::string& start) const {
    for (const std::string& line : journal()) {
      if (line.starts_with(start)) return true;
    }
    return false;
  }

  /// The value of the claim that is served next.
  std::string firstWaiter() const { return waiterAt("0"); }
  std::string lastWaiter() const { return waiterAt("-1"); }
  /// How long it may be until that claim looks again.
  std::chrono::milliseconds looksIn(const std::string& waiter) const {
    const std::string script =
        "local time = redis.call('TIME') "
        "return string.match(redis.call('HGET', KEYS[1], ARGV[1]), '^%d+') - time[1] * 1000 - time[2] / 1000";
    return std::chrono::milliseconds{std::stol(server.command({"EVAL", script, "1", waitersKey, waiter}))};
  }
  std::size_t queued() const { return std::stoul(server.command({"ZCARD", queueKey})); }
  bool queued(std::size_t count) const {
    return waitUntil([&] { return queued() == count; });
  }
  /// They are all woken up by messages, and none polls any more.
  bool subscribed(std::size_t count) const {
    return waitUntil([&] { return channelsIn({"HVALS", waitersKey}) == count; });
  }
  /// How many channels the answer to a command names.
  std::size_t channelsIn(const std::vector<std::string>& words) const {
    const std::string answer = server.command(words);
    std::size_t found = 0;
    for (std::size_t at = 0; (at = answer.find("lockkeeper:", at)) != std::string::npos; ++at) ++found;
    return found;
  }
  std::chrono::milliseconds remaining() const {
    return std::chrono::milliseconds{std::stol(server.command({"PTTL", "k"}))};
  }
  std::uint64_t counter() const { return std::stoull(server.command({"GET", "{k}:lockkeeper:fence"})); }
  std::string value() const { return server.command({"GET", "k"}); }

  static std::chrono::nanoseconds since(Instant then) { return now() - then; }

  static constexpr const char* queueKey = "{k}:lockkeeper:queue";
  static constexpr const char* waitersKey = "{k}:lockkeeper:waiters";

 private:
  std::string waiterAt(const char* place) const {
    const std::string lines = server.command({"ZRANGE", queueKey, place, place});
    return lines.substr(0, lines.find('\n'));
  }
  std::string journalPath() const { return (folder_ / "journal").string(); }

  const TempFolder folder_;
};

}  // namespace lockkeeper::test
