#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/testing/history/check.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

namespace history = lockkeeper::testing::history;

/// Tells a history call by call. Times are in any order. Ids are given in the order of the calls.
class Story {
 public:
  using Time = std::int64_t;
  using Record = history::Record;

  explicit Story(history::StorePromises promises = {}) : history_(promises) {}

  std::uint64_t invoke(Record call, Time time) {
    call.phase = history::Phase::invoke;
    call.id = ++lastId_;
    call.time = time;
    if (call.process.empty()) call.process = "p1";
    if (call.key.empty()) call.key = "k";
    history_.add(call);
    return call.id;
  }
  void tell(history::Phase phase, const std::string& process, std::uint64_t id, Time time) {
    history_.add({.time = time, .phase = phase, .process = process, .id = id});
  }
  void answer(Record answer, Time time) {
    answer.time = time;
    history_.add(answer);
  }

  /// A grant of all of "k".
  std::uint64_t lock(const std::string& process, Time invoked, Time granted, Time until,
                     std::optional<Fence> fence = {}) {
    return share({.process = process}, invoked, granted, until, fence);
  }
  /// A grant as `call` asks for it.
  std::uint64_t share(const Record& call, Time invoked, Time granted, Time until,
                      std::optional<Fence> fence = {}) {
    const std::uint64_t id = invoke(call, invoked);
    answer({.phase = history::Phase::ok, .process = call.process, .id = id, .fence = fence, .until = until},
           granted);
    return id;
  }
  void release(const std::string& process, std::uint64_t grant, Time time) {
    const std::uint64_t id =
        invoke({.process = process, .operation = history::Operation::release, .grant = grant}, time);
    tell(history::Phase::ok, process, id, time + 1);
  }
  void renew(const std::string& process, std::uint64_t grant, Time time, Time until) {
    const std::uint64_t id =
        invoke({.process = process, .operation = history::Operation::renew, .grant = grant}, time);
    answer({.phase = history::Phase::ok, .process = process, .id = id, .until = until}, time + 1);
  }
  void read(const std::string& process, std::uint64_t grant, std::int64_t value, Time time) {
    const std::uint64_t id = invoke(
        {.process = process, .operation = history::Operation::read, .key = "row", .grant = grant}, time);
    answer({.phase = history::Phase::ok, .process = process, .id = id, .value = value}, time + 1);
  }
  void write(const std::string& process, std::uint64_t grant, std::int64_t value, Time time,
             history::Phase outcome = history::Phase::ok) {
    const std::uint64_t id = invoke({.process = process,
                                     .operation = history::Operation::write,
                                     .key = "row",
                                     .grant = grant,
                                     .value = value},
                                    time);
    tell(outcome, process, id, time + 1);
  }
  /// By the store's time `at`, or between two times of the client.
  void take(std::int64_t units, std::optional<std::int64_t> at, Time invoked = 0, Time answered = 1) {
    const std::uint64_t id = invoke(
        {.process = "p1", .operation = history::Operation::take, .policy = "sms", .units = units}, invoked);
    answer({.phase = history::Phase::ok, .process = "p1", .id = id, .at = at}, answered);
  }
  void end(Time time, const std::string& key = "") {
    history_.add({.time = time, .phase = history::Phase::end, .key = key});
  }

  history::History& history() { return history_; }

  /// No rule is broken.
  void isGood() const { EXPECT_EQ(check(history_).text(), ""); }
  /// `rule` is broken, so often, and no other one.
  void breaks(history::Rule rule, std::size_t count = 1) const {
    const history::Report report = check(history_);
    EXPECT_EQ(report.count(rule), count) << report.text();
    EXPECT_EQ(report.count(), count) << report.text();
  }

 private:
  history::History history_;
  std::uint64_t lastId_ = 0;
};

}  // namespace lockkeeper::test
