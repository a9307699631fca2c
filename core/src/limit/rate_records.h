#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::detail {

/// What a limiter knows of its keys between two answers of the store, so that it need not ask again: one
/// record for each key, with what was refused and until when, and the callers who wait to ask next. A record
/// that says nothing is dropped. Thread-safe.
class RateRecords {
 public:
  /// Counts what was given back; read before the store is asked, see remember().
  using Generation = std::uint64_t;

  RateRecords(RateDriver& driver, std::shared_ptr<Clock> clock) : driver_(driver), clock_(std::move(clock)) {}

  /// Whether `charge` is known to be refused at `now`; then writes its outcome.
  bool isRefused(RateCharge& charge, Instant now);

  /// As RateDriver::take() for one charge of one time. Callers who want the same of one key while a question
  /// about it is under way share the next question: one of them asks, and what is granted goes to them in the
  /// order in which they came. Remembers a refusal. Blocks until `deadline` plus one I/O timeout; throws what
  /// the driver throws, and OutcomeUnknown when another caller has asked and has no answer by then.
  void ask(RateCharge& charge, Instant deadline);

  Generation generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Remembers charge.outcome, a refusal that was asked for at `sent`. Not when something was given back
  /// since `asked`: the store may have decided before that.
  void remember(const RateCharge& charge, Instant sent, Generation asked);

  /// The store has got something back for this key: what it refused it may allow now.
  void forgetRefusals(std::string_view key);

 private:
  static constexpr std::size_t shardCount = 1024;
  static constexpr std::size_t recordsInShard = 16;  // of refusals, when more must be remembered
  static constexpr std::size_t refusalsOfKey = 4;

  struct Batch;
  struct Refusal {
    RateLaw law;
    std::int64_t cost = 0;
    std::int64_t remaining = 0;
    Instant certainUntil{};  // counted from before the store decided
    Instant retryAt{};       // counted from after it
    Instant resetAt{};
  };
  struct Record {
    std::vector<Refusal> refusals;
    int underWay = 0;                          // questions that the store has not answered
    std::vector<std::shared_ptr<Batch>> line;  // of callers who ask next

    bool inUse() const noexcept { return underWay > 0 || !line.empty(); }
  };
  struct Shard {
    std::mutex mutex;
    std::atomic<int> refusals = 0;  // of all records: where there are none, a look costs no lock
    StringMap<Record> records;
    StringMap<Record>::value_type* last = nullptr;  // that was found: most are asked for again and again

    Record* find(const HashedString& key);
    Record& recordOf(const HashedString& key);
    void dropIfEmpty(const HashedString& key);
    void makeRoom(const Record& present, Instant now);
    void drop(StringMap<Record>::iterator place);
  };

  Shard& shardOf(const HashedString& key) { return shards_[key.hash % shardCount]; }
  std::shared_ptr<Batch> join(Record& record, const RateCharge& charge, Instant deadline) const;
  bool waitToLead(Batch& batch, Instant deadline);
  std::exception_ptr send(RateCharge& question, Instant deadline);
  static void addRefusal(Shard& shard, Record& record, const RateCharge& refused, Instant sent, Instant now);

  RateDriver& driver_;
  const std::shared_ptr<Clock> clock_;
  std::atomic<Generation> generation_ = 0;
  std::vector<Shard> shards_ = std::vector<Shard>(shardCount);
};

}  // namespace lockkeeper::detail
