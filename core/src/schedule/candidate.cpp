#include "schedule/candidate.h"

#include <algorithm>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "lock/lease/options.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper::detail {

namespace {

using std::chrono::milliseconds;

// Between campaigns that failed. LockManager has tried again and again within each of them.
constexpr Backoff campaignPauses{milliseconds{100}, std::chrono::seconds{5}};

milliseconds marginOf(const ElectionOptions& election) {
  return election.safetyMargin.value_or(election.ttl / 10);
}

LockOptions lockOptions(const ElectionOptions& election) {
  LockOptions lock;
  lock.ttl = election.ttl;
  lock.waitFor = election.ttl;  // for ever, in slices after each of which a store that is down is told of
  lock.renew = Renew::automatic;
  lock.maxHold = forever;
  lock.safetyMargin = marginOf(election);
  return lock;
}

ElectionOptions checked(ElectionOptions options) {
  checkKey(options.name);
  checkOptions(lockOptions(options));
  checkDuration("callbackTimeout", options.callbackTimeout, milliseconds{1}, std::chrono::hours{1});
  return options;
}

std::shared_ptr<LockManager> checked(std::shared_ptr<LockManager> manager) {
  if (!manager) throw std::invalid_argument("a LeaderElection needs a LockManager");
  return manager;
}

// Of an event; empty when there is no memory for it.
std::string textOf(std::initializer_list<std::string_view> parts) noexcept {
  std::string text;
  try {
    for (const std::string_view part : parts) text.append(part);
  } catch (const std::bad_alloc&) {
    text.clear();
  }
  return text;
}

}  // namespace

Candidate::Candidate(std::shared_ptr<LockManager> manager, ElectionOptions options, ElectionHooks hooks)
    : manager_(checked(std::move(manager))),
      options_(checked(std::move(options))),
      hooks_(std::move(hooks)),
      environment_(manager_->environment()) {}

void Candidate::start() {
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void Candidate::run() {
  {
    const Guard held(mutex_);
    threadId_ = std::this_thread::get_id();
  }
  Backoff backoff = campaignPauses;
  while (rest()) {
    if (auto won = campaign(backoff)) serve(std::move(*won));
  }
  const Guard held(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool Candidate::rest() {
  Guard held(mutex_);
  while (!stopped_.stop_requested() && now() < restsUntil_) wait(held, restsUntil_);
  return !stopped_.stop_requested();
}

std::optional<Lock> Candidate::campaign(Backoff& backoff) {
  try {
    LockOptions lock = lockOptions(options_);
    lock.stop = stopped_.get_token();
    auto won = manager_->tryLock(options_.name, lock);
    backoff = campaignPauses;
    if (!won && manager_->stopped()) {
      const Guard held(mutex_);
      restsUntil_ = Instant::max();
    }
    return won;
  } catch (const std::invalid_argument& error) {
    tell(EventKind::noted, error.what());  // a ttl that this store cannot give
  } catch (...) {
    // The manager has told of it.
  }
  const Guard held(mutex_);
  restsUntil_ = now() + backoff.next(*environment_.random);
  return std::nullopt;
}

void Candidate::serve(Lock won) {
  const std::stop_token lost = won.lost();
  std::stop_source ended(std::nostopstate);
  Term term{};
  {
    const Guard held(mutex_);
    if (stopped_.stop_requested() || !won.valid()) return;
    try {
      ended = std::stop_source();
    } catch (const std::bad_alloc&) {
      restsUntil_ = now() + options_.ttl;
      return;
    }
  }
  tellOfTerm(EventKind::termBegan, won.fence());  // before anybody can end it
  {
    Guard held(mutex_);
    if (stopped_.stop_requested()) {
      held.unlock();
      return tellOfTerm(EventKind::termEnded, won.fence());
    }
    termEnded_ = std::move(ended);
    term = {++terms_, won.fence(), termEnded_.get_token()};
    lock_.emplace(std::move(won));
    lostAt_.reset();
    phase_ = Phase::leading;
  }
  const std::stop_callback onLoss(lost, [this] {
    {
      const Guard held(mutex_);
      lostAt_ = now();
    }
    endTerm();
  });
  bool leading = false;
  {
    const Guard held(mutex_);
    leading = phase_ == Phase::leading;
  }
  if (leading) lead(term);

  Guard held(mutex_);
  while (phase_ != Phase::ended) wait(held, Instant::max());
  std::optional<Lock> over = std::exchange(lock_, std::nullopt);
  held.unlock();
  over.reset();  // A lost one, too: the others need not wait for the end of its lease.
  held.lock();
  phase_ = Phase::campaigning;
  changed_.notify_all();
}

/// Calls `elected`, and `deposed` when the term is over. Not for a term that was over before.
void Candidate::lead(const Term& term) {
  if (!call(hooks_.elected, term, "elected")) {
    {
      const Guard held(mutex_);
      restsUntil_ = now() + options_.ttl;
    }
    endTerm();
  }
  {
    Guard held(mutex_);
    while (phase_ != Phase::ended) wait(held, Instant::max());
  }
  call(hooks_.deposed, term, "deposed");
  reportLateness();
}

void Candidate::endTerm() {
  Guard held(mutex_);
  if (phase_ != Phase::leading) return;
  phase_ = Phase::ending;
  std::stop_source ended = termEnded_;
  endingThread_ = std::this_thread::get_id();
  held.unlock();
  ended.request_stop();
  tellOfTerm(EventKind::termEnded, std::nullopt);
  held.lock();
  endingThread_ = {};
  phase_ = Phase::ended;
  changed_.notify_all();
}

bool Candidate::call(const Callback& callback, const Term& term, const char* name) {
  if (!callback) return true;
  Guard held(mutex_);
  callbackSince_ = now();
  changed_.notify_all();
  held.unlock();

  bool failed = true;
  try {
    callback(term);
    failed = false;
  } catch (const std::exception& error) {
    tell(EventKind::callbackFailed, textOf({name, " threw: ", error.what()}));
  } catch (...) {
    tell(EventKind::callbackFailed, textOf({name, " threw"}));
  }

  held.lock();
  callbackSince_.reset();
  changed_.notify_all();
  return !failed;
}

void Candidate::reportLateness() {
  std::optional<Instant> lostAt;
  {
    const Guard held(mutex_);
    lostAt = lostAt_;
  }
  const milliseconds margin = marginOf(options_);
  if (!lostAt || now() - *lostAt <= margin) return;
  const auto late = std::chrono::ceil<milliseconds>(now() - *lostAt - margin);
  tell(EventKind::callbackLate, textOf({"the callbacks returned ", formatDuration(late),
                                        " after the lease of the lost term had ended"}));
}

bool Candidate::leads() {
  const Guard held(mutex_);
  return phase_ == Phase::leading && lock_ && lock_->valid();
}

std::optional<Fence> Candidate::fence() {
  const Guard held(mutex_);
  return phase_ == Phase::leading && lock_ ? lock_->fence() : std::nullopt;
}

bool Candidate::resign(milliseconds pause) {
  checkDuration("the pause after resigning", pause, milliseconds{0}, std::chrono::hours{24});
  Guard held(mutex_);
  if (phase_ != Phase::leading) return false;
  restsUntil_ = now() + pause;
  const auto term = terms_;
  const bool fromCallback = inOwnCallback();
  held.unlock();
  endTerm();
  if (fromCallback) return true;
  held.lock();
  const auto over = [&] { return terms_ != term || phase_ == Phase::campaigning; };
  if (!awaitCallbacks(held, over)) releaseEarly(held, "resign()");
  return true;
}

void Candidate::stop() {
  stopped_.request_stop();
  {
    const Guard held(mutex_);
    changed_.notify_all();
  }
  endTerm();
  Guard held(mutex_);
  if (inOwnCallback()) return thread_.detach();  // it ends when the callback has returned
  if (awaitCallbacks(held, [&] { return finished_; })) {
    held.unlock();
    thread_.join();
  } else {
    releaseEarly(held, "the end of the election");
    thread_.detach();
  }
}

/// Whether the election waits for this thread: it runs a callback, or what hooks into Term::ended.
bool Candidate::inOwnCallback() const {
  const auto self = std::this_thread::get_id();
  return self == threadId_ || self == endingThread_;
}

bool Candidate::awaitCallbacks(Guard& held, const std::function<bool()>& over) {
  const Instant asked = now();
  while (!over()) {
    // Without a callback, it is the LockManager that bounds what the thread does.
    const Instant until = callbackSince_
                              ? saturatingAdd(std::max(asked, *callbackSince_), options_.callbackTimeout)
                              : Instant::max();
    if (now() >= until) return false;
    wait(held, until);
  }
  return true;
}

void Candidate::releaseEarly(Guard& held, const char* who) {
  std::optional<Lock> over = std::exchange(lock_, std::nullopt);
  held.unlock();
  if (over) {
    over.reset();
    tell(EventKind::callbackLate,
         textOf({"a callback still ran when its time was up: ", who, " has let others be elected"}));
  }
}

void Candidate::tell(EventKind kind, std::string_view text) const {
  const Instant at = now();
  environment_.tell({.kind = kind, .key = options_.name, .began = at, .ended = at, .text = text});
}

void Candidate::tellOfTerm(EventKind kind, std::optional<Fence> fence) {
  const Instant at = now();
  if (kind == EventKind::termBegan) termBegan_ = at;
  environment_.tell({.kind = kind, .key = options_.name, .began = termBegan_, .ended = at, .fence = fence});
}

}  // namespace lockkeeper::detail
