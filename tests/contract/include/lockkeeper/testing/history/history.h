#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/history/call.h"
#include "lockkeeper/testing/history/record.h"

namespace lockkeeper::testing::history {

/// A key that the store still held in the end.
struct Leftover {
  std::uint32_t key;
  std::int64_t time;
  std::size_t line;
};

/// A history, record by record. Records of one process come in their order; how those of several are mixed
/// does not matter. One thread at a time.
class History {
 public:
  /// An empty one, of a store that promises this.
  explicit History(StorePromises promises = {}) : promises_(promises) {}
  /// The calls stay where they are.
  History(History&&) = default;
  History(const History&) = delete;  // calls point at each other

  /// A limit, before the first record that names it. Throws std::invalid_argument for a name that is there
  /// already, and for a kind other than token-bucket and sliding-window: a fixed window depends on the
  /// store's wall clock, and the slots of a queue lie in the future.
  void addPolicy(const RatePolicy& policy) {
    const RateKind kind = policy.law().kind;
    if (kind != RateKind::tokenBucket && kind != RateKind::slidingWindow)
      throw std::invalid_argument("the policy " + lockkeeper::quoted(policy.name()) + " is a " +
                                  toString(kind) +
                                  ": only token-bucket, leaky-meter and sliding-window can be checked");
    if (!policies_.emplace(policy.name(), policy).second)
      throw std::invalid_argument("the policy " + lockkeeper::quoted(policy.name()) + " is there twice");
  }

  /// The next record. `line` is where it stands, for messages and reports; without one, records are counted.
  /// Throws std::invalid_argument that names line and value for a record that contradicts those before it.
  void add(const Record& record, std::optional<std::size_t> line = {}) {
    line_ = line.value_or(line_ + 1);
    checkTime("time", record.time);
    latest_ = std::max(latest_, record.time);
    if (record.phase == Phase::end) return addEnd(record);
    Process& process = processOf(record);
    switch (record.phase) {
      case Phase::invoke:
        return addInvoke(record, process);
      case Phase::died:
        process.died = true;
        for (const auto& [id, call] : process.calls) call->ended = std::min(call->ended, record.time);
        return;
      case Phase::paused:
      case Phase::resumed:
        return addPause(record, process);
      case Phase::queued:
        return addQueued(record, callOf(record, process));
      case Phase::lost:
        return addLost(record, callOf(record, process));
      default:
        return addAnswer(record, callOf(record, process));
    }
  }

  /// What the store promises.
  const StorePromises& promises() const noexcept { return promises_; }
  /// All calls, in the order of their first records.
  const std::deque<Call>& calls() const noexcept { return calls_; }
  /// What the store held in the end.
  const std::vector<Leftover>& leftovers() const noexcept { return leftovers_; }
  /// Whether it says what the store held in the end.
  bool hasEnd() const noexcept { return hasEnd_; }
  /// The latest time of all records.
  std::int64_t latest() const noexcept { return latest_; }
  /// How many processes it names.
  std::size_t processCount() const noexcept { return processes_.size(); }
  /// The key with the number that calls have for it.
  const std::string& key(std::uint32_t index) const { return keys_.texts[index]; }
  /// The name of the process with the number that calls have for it.
  const std::string& process(std::uint32_t index) const { return names_.texts[index]; }
  /// Whether the call's process was killed, at any time.
  bool hasDied(const Call& call) const { return processes_[call.process].died; }
  /// For how long the call's process was stopped from its invoke to `end`.
  std::int64_t pausedFor(const Call& call, std::int64_t end) const {
    const auto& pauses = processes_[call.process].pauses;
    std::int64_t all = 0;
    for (auto each = pauses.lower_bound(end); each != pauses.begin();) {
      const auto& [from, until] = *--each;
      if (until <= call.invoked) break;
      all += std::min(until, end) - std::max(from, call.invoked);
    }
    return all;
  }

 private:
  static constexpr std::int64_t latestTime = std::int64_t{1} << 62;  // so that sums of two fit

  /// Texts, each as a small number.
  struct Texts {
    std::unordered_map<std::string, std::uint32_t> indexes;
    std::vector<std::string> texts;

    std::uint32_t indexOf(const std::string& text) {
      const auto [found, isNew] = indexes.try_emplace(text, static_cast<std::uint32_t>(texts.size()));
      if (isNew) texts.push_back(text);
      return found->second;
    }
  };

  struct Process {
    std::unordered_map<std::uint64_t, Call*> calls;
    std::map<std::int64_t, std::int64_t> pauses;  // from when until when
    bool died = false;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument("line " + std::to_string(line_) + ": " + what);
  }

  void checkTime(const char* name, std::int64_t time, std::int64_t most = latestTime) const {
    if (time < 0 || time > most)
      refuse(std::string(name) + " is " + std::to_string(time) + ": 0 to " + std::to_string(most) +
             " are allowed");
  }

  static std::string numbered(const char* name, std::uint64_t number) {
    return std::string(name) + " " + std::to_string(number);
  }

  Process& processOf(const Record& record) {
    if (record.process.empty()) refuse("process is \"\": it must have a name");
    const std::uint32_t index = names_.indexOf(record.process);
    if (index == processes_.size()) processes_.emplace_back();
    if (processes_[index].died)
      refuse("process is " + lockkeeper::quoted(record.process) +
             ", which has died: one that is started again needs another name");
    return processes_[index];
  }

  Call& callOf(const Record& record, Process& process) const {
    const auto found = process.calls.find(record.id);
    if (found == process.calls.end())
      refuse(numbered("id is", record.id) + ": the process has not invoked such a call");
    Call& call = *found->second;
    if (record.time < call.invoked)
      refuse("time is " + std::to_string(record.time) + ", before the call's invoke at " +
             std::to_string(call.invoked));
    return call;
  }

  Call* grantOf(const Record& record, Process& process) const {
    const auto found = process.calls.find(record.grant);
    if (found == process.calls.end() || !found->second->isGrant())
      refuse(numbered("grant is", record.grant) + ": no lock call of this process with this id is ok");
    return found->second;
  }

  void addEnd(const Record& record) {
    hasEnd_ = true;
    if (record.key.empty()) return;
    const std::uint32_t key = keys_.indexOf(record.key);
    if (!leftKeys_.insert(key).second)
      refuse("key is " + lockkeeper::quoted(record.key) + ", which an end before names, too");
    leftovers_.push_back({key, record.time, line_});
  }

  void addInvoke(const Record& record, Process& process) {
    Call call{.operation = record.operation, .kind = record.kind};
    call.process = names_.indexOf(record.process);
    call.line = line_;
    call.invoked = record.time;
    if (record.within) {
      checkTime("within", *record.within);
      call.within = *record.within;
    }
    if (record.operation == Operation::lock) {
      weigh(record, call);
    } else if (record.operation == Operation::take) {
      limit(record, call);
    } else {
      call.grant = grantOf(record, process);
    }
    const bool isRenewal = record.operation == Operation::renew || record.operation == Operation::release;
    if (record.key.empty() && !isRenewal) refuse("key is \"\": it must have a name");
    if (isRenewal) {
      call.key = call.grant->key;
    } else {
      call.key = keys_.indexOf(call.policy ? record.policy + ":" + record.key : record.key);
    }
    if (record.operation == Operation::write) {
      if (!record.value) refuse("value is missing: a write has one");
      call.value = record.value;
    }
    const auto [place, isNew] = process.calls.try_emplace(record.id, nullptr);
    if (!isNew) refuse(numbered("id is", record.id) + ": the process has another call with this id");
    if (record.operation == Operation::release) call.grant->ended = std::min(call.grant->ended, record.time);
    place->second = &calls_.emplace_back(call);
  }

  void weigh(const Record& record, Call& call) const {
    Share share = readerShare;
    switch (record.kind) {
      case Kind::exclusive:
        call.weight = call.limit = std::int64_t{2} * Share::most;
        return;
      case Kind::shared:
        break;
      case Kind::upgradeable:
        share = upgradeableShare;
        break;
      case Kind::upgrade:
        share = restOfUpgradeable;
        break;
      case Kind::permits:
        share = record.permits;
        break;
    }
    try {
      checkShare(share);
    } catch (const std::invalid_argument& error) {
      refuse(error.what());
    }
    call.weight = share.weight;
    call.limit = share.limit;
  }

  void limit(const Record& record, Call& call) const {
    const auto found = policies_.find(record.policy);
    if (found == policies_.end())
      refuse("policy is " + lockkeeper::quoted(record.policy) + ": no line before names it");
    if (record.units < 0 || record.units > found->second.limit())
      refuse("units is " + std::to_string(record.units) + ": 0 to " + std::to_string(found->second.limit()) +
             " are allowed, the policy's limit");
    call.policy = &found->second;
    call.units = record.units;
  }

  void addQueued(const Record& record, Call& call) const {
    if (call.operation != Operation::lock)
      refuse(numbered("id is", record.id) + ": only a lock call is queued");
    if (call.answer) refuse(numbered("id is", record.id) + ": the call was answered before");
    call.firstQueued = std::min(call.firstQueued, record.time);
    call.waitedUntil = call.lastQueued;
    call.lastQueued = std::max(call.lastQueued, record.time);
  }

  void addLost(const Record& record, Call& call) const {
    if (!call.isGrant()) refuse(numbered("id is", record.id) + ": only a lock call that is ok can be lost");
    call.ended = std::min(call.ended, record.time);
  }

  void addPause(const Record& record, Process& process) const {
    auto& pauses = process.pauses;
    const bool isPaused = !pauses.empty() && pauses.rbegin()->second == never;
    if (isPaused == (record.phase == Phase::paused))
      refuse("process is " + lockkeeper::quoted(record.process) +
             (isPaused ? ", which is paused already" : ", which is not paused"));
    if (!isPaused) {
      pauses.emplace(record.time, never);
    } else {
      pauses.rbegin()->second = record.time;
    }
  }

  void addAnswer(const Record& record, Call& call) const {
    if (call.answer) refuse(numbered("id is", record.id) + ": the call was answered before");
    call.answer = record.phase;
    call.answered = record.time;
    call.answerLine = line_;
    if (record.phase != Phase::ok) return;
    const bool isLock = call.operation == Operation::lock;
    const bool isLease = isLock || call.operation == Operation::renew;
    if (isLease != record.until.has_value())
      refuse(isLease ? "until is missing: a lock and a renewal that are ok have one"
                     : "until is there: only a lock and a renewal have one");
    if (record.fence && !isLock) refuse("fence is there: only a lock has one");
    if (record.at && !call.policy) refuse("at is there: only a take has one");
    if (record.value.has_value() != (call.operation == Operation::read))
      refuse(record.value ? "value is there: of those that are ok, only a read has one"
                          : "value is missing: a read that is ok has one");
    if (record.at) checkTime("at", *record.at, latestTime / 1000);
    if (isLease) {
      checkTime("until", *record.until);
      Call& grant = isLock ? call : *call.grant;
      grant.until = std::max(grant.until, *record.until);
    }
    call.fence = record.fence;
    call.at = record.at;
    if (record.value) call.value = record.value;
  }

  StorePromises promises_;
  std::map<std::string, RatePolicy> policies_;
  std::deque<Call> calls_;
  std::vector<Leftover> leftovers_;
  std::set<std::uint32_t> leftKeys_;
  Texts keys_;
  Texts names_;
  std::deque<Process> processes_;
  std::size_t line_ = 0;
  std::int64_t latest_ = 0;
  bool hasEnd_ = false;
};

}  // namespace lockkeeper::testing::history
