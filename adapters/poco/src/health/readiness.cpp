#include "health/readiness.h"

#include <Poco/Logger.h>

#include <future>
#include <stdexcept>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

constexpr auto key = "lockkeeper/health";
constexpr std::chrono::seconds longestRead{1};
constexpr std::size_t longestCause = 200;

void log(const std::string& part, const std::exception* failure) noexcept {
  try {
    Poco::Logger& logger = Poco::Logger::get("lockkeeper.health");
    if (failure != nullptr) {
      logger.warning(part + " are down: " + printable(failure->what(), longestCause));
    } else {
      logger.notice(part + " are up again");
    }
  } catch (...) {
    // A broken log says nothing about the stores.
  }
}

}  // namespace

Readiness::Readiness(const HealthParts& given) : clock_(systemClock()), suspectLocks_([] { return 0; }) {
  if (given.locks) {
    clock_ = given.locks->environment().clock;
    suspectLocks_ = [locks = given.locks] { return locks->suspectLocks(); };
    parts_.push_back({"locks", [locks = given.locks] { (void)locks->holder(key); }});
  }
  if (given.limits) {
    clock_ = given.limits->environment().clock;
    const auto policy = std::make_shared<const RatePolicy>(
        "lockkeeper.health", RatePolicyOptions{.rate = Rate::parse("rate", "1/s")});
    parts_.push_back({"limits", [limits = given.limits, policy] { (void)limits->peek(key, *policy); }});
  }
  if (given.answers) {
    parts_.push_back({"answers", [answers = given.answers, clock = clock_] {
                        (void)answers->get(key, clock->now() + longestRead);
                      }});
  }
  if (parts_.empty()) throw std::invalid_argument("serveHealth() needs a part to ask: all of them are null");
}

Readiness::Result Readiness::get() {
  // Who comes while another one asks waits here, and finds the result.
  const std::lock_guard held(mutex_);
  if (!last_ || clock_->now() >= probedAt_ + fresh) {
    last_ = probe();
    probedAt_ = clock_->now();
  }
  return *last_;
}

Readiness::Result Readiness::probe() {
  // Together: several that hang take no longer than one.
  std::vector<std::future<void>> answers;
  for (const Part& part : parts_)
    answers.push_back(std::async(std::launch::async | std::launch::deferred, part.ask));
  Result result;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    Part& part = parts_[index];
    const bool before = std::exchange(part.up, true);
    try {
      answers[index].get();
      if (!before) log(part.name, nullptr);
    } catch (const std::exception& error) {
      part.up = false;
      if (before) log(part.name, &error);
    }
    result.parts.emplace_back(part.name, part.up);
    result.ready = result.ready && part.up;
  }
  result.suspectLocks = suspectLocks_();
  result.ready = result.ready && result.suspectLocks == 0;
  return result;
}

}  // namespace lockkeeper::poco
