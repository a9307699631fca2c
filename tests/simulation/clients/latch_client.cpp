#include <algorithm>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/latch/latch.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// One for each process: its workers count for the same one.
const std::vector<std::string> participants{"p1", "p2", "p3", "p4"};

class LatchClient final : public Client {
 public:
  explicit LatchClient(const ClientSetting& setting)
      : scene_(setting.scene),
        own_(setting.owner),
        options_{.keep = std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds(Arrivals::kept)),
                 .operationTimeout = operationTimeout,
                 .environment = setting.environment},
        values_(stores().openValues(setting.uri, setting.environment)),
        barrier_(values_, "barrier", participants, options_) {}

  void operate(Chance chance) override {
    const std::string latch = nameOfLatch();
    const milliseconds waitFor(chance.happens(0.3) ? 0 : chance.upTo(4000));
    const milliseconds cancelledAfter(chance.upTo(1000));
    std::optional<Cancellation> cancellation;
    if (chance.happens(0.1)) cancellation.emplace(cancelledAfter);
    const std::stop_token stop = cancellation ? cancellation->token() : std::stop_token();
    switch (chance.upTo(9)) {
      case 0:
      case 1:
      case 2:
        count(latch);
        break;
      case 3:
      case 4:
      case 5:
        wait(latch, waitFor, stop);
        break;
      case 6:
        lookForMissing(latch);
        break;
      default:
        arrive(waitFor, stop);
    }
    if (chance.happens(0.5)) std::this_thread::sleep_for(milliseconds(chance.upTo(1000)));
  }

  // The last latch opens: nobody waits without an end.
  void settle() override {
    while (scene_.working > 0) std::this_thread::sleep_for(1s);
    const std::string last = "last";
    int attempts = 30;
    while (!count(last) && --attempts > 0) std::this_thread::sleep_for(500ms);
    const Time began = scene_.scheduler.now();
    const Judge::Call call = scene_.judge.callBegins();
    if (!wait(last, 20s, {})) return scene_.judge.fail("the last latch", "does not open");
    // Who is not told looks after five seconds.
    const Time waited = std::max<Time>(scene_.arrivals.lastCount(last) - began, 0);
    scene_.judge.callEnds(call, last, milliseconds(waited / millisecond) + 5s, operationTimeout + ioTimeout);
  }

 private:
  // All processes come to the next one at about the same time.
  std::string nameOfLatch() {
    constexpr int operationsOfOne = 8;
    const std::lock_guard guard(mutex_);
    return "l" + std::to_string(operations_++ / operationsOfOne);
  }

  CountDownLatch open(const std::string& latch) const { return {values_, latch, participants, options_}; }

  // Calls `ask()`, which has to end in time, and tells the trace of it. False when it has failed.
  template <class Ask>
  bool called(const std::string& what, milliseconds waitFor, milliseconds rest, const Ask& ask) {
    scene_.scheduler.trace([&] { return what + ", for up to " + std::to_string(waitFor.count()) + " ms"; });
    const Judge::Call call = scene_.judge.callBegins();
    bool answered = false;
    try {
      ask();
      answered = true;
    } catch (const Error& error) {
      scene_.scheduler.trace([&] { return std::string("gets an error: ") + error.what(); });
    }
    scene_.judge.callEnds(call, what, waitFor, rest);
    return answered;
  }

  bool count(const std::string& latch) {
    const std::size_t number = scene_.arrivals.begins(latch, own_);
    return called("counts at " + latch, 0ms, operationTimeout + ioTimeout, [&] {
      open(latch).countDown(own_);
      scene_.arrivals.counted(latch, own_, number);
    });
  }

  bool wait(const std::string& latch, milliseconds waitFor, const std::stop_token& stop) {
    const Time began = scene_.scheduler.now();
    bool opened = false;
    const bool answered = called("waits for " + latch, waitFor, operationTimeout + ioTimeout,
                                 [&] { opened = open(latch).wait(waitFor, stop); });
    if (answered) judge(latch, opened, began, stop);
    return opened;
  }

  void judge(const std::string& latch, bool opened, Time began, const std::stop_token& stop) {
    scene_.scheduler.trace([&] { return latch + (opened ? " opens" : " stays shut"); });
    if (opened) {
      scene_.arrivals.opens(latch, participants, began);
    } else if (!stop.stop_requested()) {
      scene_.arrivals.staysShut(latch, participants, began, scene_.scheduler.now());
    }
  }

  void lookForMissing(const std::string& latch) {
    const Time began = scene_.scheduler.now();
    const auto each = (operationTimeout + ioTimeout) * static_cast<int>(participants.size());
    called("looks who is missing at " + latch, 0ms, each, [&] {
      const std::vector<std::string> missing = open(latch).missing();
      for (const std::string& who : participants) {
        const bool isMissing = std::find(missing.begin(), missing.end(), who) != missing.end();
        isMissing ? scene_.arrivals.isMissing(latch, who, began) : scene_.arrivals.isSeen(latch, who, began);
      }
    });
  }

  void arrive(milliseconds waitFor, const std::stop_token& stop) {
    std::uint64_t round = 0;
    {
      const std::lock_guard guard(mutex_);
      round = round_;
    }
    const std::string name = "barrier." + std::to_string(round);
    const Time began = scene_.scheduler.now();
    const std::size_t number = scene_.arrivals.begins(name, own_);
    bool all = false;
    const bool answered = called("comes to " + name, waitFor, operationTimeout + ioTimeout,
                                 [&] { all = barrier_.arriveAndWait(own_, round, waitFor, stop); });
    if (!answered) return;
    if (!stop.stop_requested()) scene_.arrivals.counted(name, own_, number);
    judge(name, all, began, stop);
    const std::lock_guard guard(mutex_);
    if (all) round_ = std::max(round_, round + 1);
  }

  Scene& scene_;
  const std::string own_;
  const LatchOptions options_;
  const std::shared_ptr<ValueStore> values_;
  Barrier barrier_;
  std::mutex mutex_;
  int operations_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace

std::unique_ptr<Client> latchClient(const ClientSetting& setting) {
  return std::make_unique<LatchClient>(setting);
}

}  // namespace lockkeeper::simulation
