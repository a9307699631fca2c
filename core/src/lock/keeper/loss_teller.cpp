#include "lock/keeper/loss_teller.h"

#include <new>
#include <utility>

namespace lockkeeper::detail {

namespace {

// So many slow callbacks of lost(), less one, may run at once before the next loss is told late.
constexpr std::size_t mostCallbackThreads = 4;

}  // namespace

LossTeller::LossTeller(LeaseTable& leases, const Environment& environment, std::string store,
                       std::mutex& mutex)
    : leases_(leases),
      environment_(environment),
      store_(std::move(store)),
      mutex_(mutex),
      threads_(mutex_, *environment_.clock, mostCallbackThreads,
               {.due = [this] { return due(); },
                .doIt = [this](auto& held) { tellNext(held); },
                .last = [this](auto& held) { tellRest(held); }}) {
  firedToken();  // its first use allocates: not when memory is short
}

// The mutex is not needed if the threads wake up before that anyway, as they mostly do.
void LossTeller::watch(Instant end) {
  if (!threads_.sleepsBeyond(end)) return;
  const std::lock_guard held(mutex_);
  threads_.wakeUpAt(end);
}

void LossTeller::announced(Lease& lease) {
  if (lease.told.exchange(Told::acquired) != Told::nothing) tellLater(lease.shared_from_this());
}

std::shared_ptr<Lease> LossTeller::lose(LeaseTable::Part& part, Lease& lease, LossReason reason) {
  const bool heldTooLong = reason == LossReason::leaseEnded &&
                           lease.validUntil.load(std::memory_order_relaxed) == lease.heldUntil();
  lease.lossReason = heldTooLong ? LossReason::maxHold : reason;
  lease.state.store(LockState::lost, std::memory_order_release);
  part.remove(lease);
  // The next caller of this process may go to the store from now on: it is the store that excludes it.
  lease.turn.leave();
  if (lease.told.exchange(Told::lostUntold) != Told::acquired) return nullptr;
  return lease.shared_from_this();
}

void LossTeller::tellLater(std::shared_ptr<Lease> lost) noexcept {
  if (lost == nullptr) return;
  try {
    const std::lock_guard held(mutex_);
    untold_.push_back(lost);
    threads_.wakeUpAt(due());
  } catch (const std::bad_alloc&) {
    tell(*lost);  // better on this thread than never
  }
}

void LossTeller::tellLater(std::list<std::shared_ptr<Lease>>& lost) {
  untold_.splice(untold_.end(), lost);
  threads_.wakeUpAt(due());
}

bool LossTeller::stillRuns(Lease& lease) {
  std::shared_ptr<Lease> lost;
  {
    // A renewal may be setting validUntil right now: decide under the mutex, once and for ever.
    LeaseTable::Part& part = leases_.partOf(lease.token);
    const std::lock_guard held(part.mutex);
    if (!lease.alive()) return false;
    if (environment_.clock->now() < lease.validUntil.load(std::memory_order_relaxed)) return true;
    lost = lose(part, lease, LossReason::leaseEnded);
  }
  tellLater(std::move(lost));
  return false;
}

std::stop_token LossTeller::lostToken(Lease& lease) noexcept {
  const std::lock_guard held(leases_.partOf(lease.token).mutex);
  if (!lease.lost.stop_possible()) {
    if (lease.told.load() == Told::loss) return firedToken();
    try {
      lease.lost = std::stop_source();
    } catch (const std::bad_alloc&) {
      return firedToken();  // better lost than never told
    }
  }
  return lease.lost.get_token();
}

void LossTeller::loseTogether(Lease& lease, std::stop_source all) {
  {
    const std::lock_guard held(leases_.partOf(lease.token).mutex);
    lease.lost = all;
    if (lease.told.load() != Told::loss) return;
  }
  all.request_stop();
}

Instant LossTeller::due() { return untold_.empty() ? leases_.firstEnd() : Instant::min(); }

// Ends the lease that ends first, if its end has come. Returns it if its loss is to be told.
std::shared_ptr<Lease> LossTeller::loseNext() {
  const Instant end = leases_.firstEnd();
  if (environment_.clock->now() < end) return nullptr;
  for (LeaseTable::Part& part : leases_.parts()) {
    const std::lock_guard held(part.mutex);
    if (part.ends.firstTime() <= end) return lose(part, part.ends.first(), LossReason::leaseEnded);
  }
  return nullptr;
}

void LossTeller::tellNext(std::unique_lock<std::mutex>& held) {
  std::shared_ptr<Lease> lease;
  if (untold_.empty()) {
    lease = loseNext();
  } else {
    lease = std::move(untold_.front());
    untold_.pop_front();
  }
  if (lease == nullptr) return;
  held.unlock();
  tell(*lease);
  lease.reset();  // It may be the last owner: not under the mutex.
  held.lock();
}

void LossTeller::tellRest(std::unique_lock<std::mutex>& held) {
  while (!untold_.empty()) tellNext(held);
}

void LossTeller::tell(Lease& lease) {
  fire(lease);
  environment_.tell(lease.endEvent(EventKind::lost, store_, environment_.clock->now()));
}

// With no mutex held: the callbacks run.
void LossTeller::fire(Lease& lease) {
  std::stop_source lost(std::nostopstate);
  {
    const std::lock_guard held(leases_.partOf(lease.token).mutex);
    lease.told = Told::loss;
    lost = lease.lost;
  }
  lost.request_stop();
}

}  // namespace lockkeeper::detail
