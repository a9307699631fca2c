#include "lockkeeper/latch/latch.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::size_t mostParticipants = 1000;
constexpr milliseconds firstPause{5};
constexpr std::chrono::seconds longestAwait{5};

// How often a wait reads the values of all participants: well before a new one has expired.
milliseconds longestUnseen(const LatchOptions& options) { return options.keep / 3; }

void checkOptions(const LatchOptions& options) {
  checkNamespace(options.keyNamespace);
  checkDuration("keep", options.keep, milliseconds{1000}, std::chrono::days{366});
  checkDuration("operationTimeout", options.operationTimeout, milliseconds{1}, hours{1});
  if (options.longestOutage != forever)
    checkDuration("longestOutage", options.longestOutage, milliseconds{1}, hours{24});
  checkDuration("longestPause", options.longestPause, milliseconds{1}, hours{1});
  if (!options.environment.clock || !options.environment.random) {
    throw std::invalid_argument("the environment of a latch needs a clock and a random");
  }
}

// Sorted, each once.
std::vector<std::string> checked(std::vector<std::string> participants) {
  for (const std::string& each : participants) checkName("participant", each);
  std::sort(participants.begin(), participants.end());
  participants.erase(std::unique(participants.begin(), participants.end()), participants.end());
  if (participants.empty() || participants.size() > mostParticipants) {
    throw std::invalid_argument("a latch has 1 to " + std::to_string(mostParticipants) +
                                " participants, not " + std::to_string(participants.size()));
  }
  return participants;
}

Instant endOf(milliseconds waitFor, const LatchOptions& options) {
  if (waitFor == forever) return Instant::max();
  checkDuration("waitFor", waitFor, milliseconds{0}, hours{24});
  return saturatingAdd(options.environment.clock->now(), waitFor);
}

/// Repeats `step` until it returns true; false at `until`, or if stopped. Pauses are counted from the
/// beginning of a step. If the store fails, it is asked again; its error is thrown only at the end, which
/// comes after longestOutage if there is no other.
bool repeatUntil(const LatchOptions& options, Instant until, const std::stop_token& stop,
                 const std::function<bool()>& step) {
  Clock& clock = *options.environment.clock;
  Backoff backoff(firstPause, std::min(options.longestPause, longestUnseen(options)));
  Instant answeredAt = clock.now();
  for (;;) {
    const Instant next = saturatingAdd(clock.now(), backoff.next(*options.environment.random));
    std::exception_ptr failure;
    try {
      if (step()) return true;
    } catch (const StoreUnavailable&) {
      failure = std::current_exception();
    } catch (const OutcomeUnknown&) {
      failure = std::current_exception();
    }
    if (stop.stop_requested()) return false;
    const Instant now = clock.now();
    if (!failure) answeredAt = now;
    const bool isLost = until == Instant::max() && options.longestOutage != forever &&
                        now >= saturatingAdd(answeredAt, options.longestOutage);
    if (now >= until || isLost) {
      if (failure) std::rethrow_exception(failure);
      return false;
    }
    pauseUntil(clock, std::min(until, next), stop);
  }
}

}  // namespace

CountDownLatch::CountDownLatch(std::shared_ptr<ValueStore> store, std::string name,
                               std::vector<std::string> participants, LatchOptions options)
    : store_(std::move(store)),
      name_(std::move(name)),
      participants_(checked(std::move(participants))),
      options_(std::move(options)) {
  if (store_ == nullptr) throw std::invalid_argument("a latch needs a store of values");
  checkName("latch", name_);
  checkOptions(options_);
}

std::string CountDownLatch::keyOf(std::string_view participant) const {
  std::string key = options_.keyNamespace;
  if (!key.empty()) key += ':';
  return key.append(kind_).append("/").append(name_).append("/").append(participant);
}

void CountDownLatch::countDown(std::string_view participant) {
  if (!std::binary_search(participants_.begin(), participants_.end(), participant)) {
    throw std::invalid_argument(quoted(participant) + " is not a participant of the latch " + quoted(name_));
  }
  store_->announce(keyOf(participant), "", options_.keep,
                   options_.environment.clock->now() + options_.operationTimeout);
}

bool CountDownLatch::wait(std::chrono::milliseconds waitFor, const std::stop_token& stop) {
  const Clock& clock = *options_.environment.clock;
  const Instant until = endOf(waitFor, options_);
  const Instant lastReply = saturatingAdd(until, options_.operationTimeout);
  const auto inTime = [&] { return !stop.stop_requested() && clock.now() < lastReply; };
  const auto replyBy = [&] { return std::min(lastReply, clock.now() + options_.operationTimeout); };

  std::vector<std::string> uncounted = participants_;
  Instant nextLook = Instant::min();
  // Often enough that no value expires unseen. Who has counted down once need not be asked for again.
  const auto lookAtAll = [&] {
    const Instant began = clock.now();
    for (auto each = uncounted.begin(); each != uncounted.end() && inTime();) {
      each = store_->get(keyOf(*each), replyBy()) ? uncounted.erase(each) : each + 1;
    }
    nextLook = began + longestUnseen(options_);
  };
  // Waits for one after the other.
  const auto hasNextCounted = [&] {
    if (clock.now() >= nextLook) lookAtAll();
    if (uncounted.empty()) return true;
    if (!inTime()) return false;
    const Instant waitUntil = std::min({until, nextLook, clock.now() + longestAwait});
    if (!store_->await(keyOf(uncounted.front()), waitUntil, stop, replyBy())) return false;
    uncounted.erase(uncounted.begin());
    return true;
  };
  while (!uncounted.empty()) {
    if (!inTime() || !repeatUntil(options_, until, stop, hasNextCounted)) return false;
  }
  return true;
}

std::vector<std::string> CountDownLatch::missing() {
  std::vector<std::string> result;
  for (const std::string& each : participants_) {
    const Instant deadline = options_.environment.clock->now() + options_.operationTimeout;
    if (!store_->get(keyOf(each), deadline)) result.push_back(each);
  }
  return result;
}

Barrier::Barrier(std::shared_ptr<ValueStore> store, std::string name, std::vector<std::string> participants,
                 LatchOptions options)
    : store_(std::move(store)),
      name_(std::move(name)),
      participants_(std::move(participants)),
      options_(std::move(options)) {
  constexpr std::size_t longestName = 40;  // with the round, a name of a latch
  if (name_.size() > longestName) {
    throw std::invalid_argument("the name " + quoted(name_) + " of a barrier is longer than " +
                                std::to_string(longestName) + " characters");
  }
  const CountDownLatch allThatIsChecked(store_, name_, participants_, options_);
}

bool Barrier::arriveAndWait(std::string_view participant, std::uint64_t round,
                            std::chrono::milliseconds waitFor, const std::stop_token& stop) {
  CountDownLatch latch(store_, name_ + "." + std::to_string(round), participants_, options_);
  latch.kind_ = "barrier";  // whose keys are no other latch's
  const Instant until = endOf(waitFor, options_);
  const Instant lastReply = saturatingAdd(until, options_.operationTimeout);
  const bool counted = repeatUntil(options_, until, stop, [&] {
    latch.countDown(participant);
    return true;
  });
  if (!counted) return false;
  if (waitFor == forever) return latch.wait(forever, stop);
  const Instant now = options_.environment.clock->now();
  const auto leftUntil = [&](Instant end) {
    return std::max(std::chrono::floor<milliseconds>(end - now), milliseconds{0});
  };
  // When the count was answered after `until`, it has used some of the time that the store has to reply.
  latch.options_.operationTimeout = std::min(options_.operationTimeout, leftUntil(lastReply));
  return latch.wait(leftUntil(until), stop);
}

}  // namespace lockkeeper
