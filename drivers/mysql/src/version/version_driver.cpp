#include "lockkeeper/mysql/version_driver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/error.h"
#include "version/lock_table.h"
#include "version/version_options.h"

namespace lockkeeper::mysql {

/// The sessions, and what the driver's operations share.
class VersionDriver::Impl {
 public:
  Impl(const VersionOptions& options, const Environment& environment)
      : texts_(options.table),
        opener_(options,
                {.setUp = LockTable::setUp,
                 .schema = LockTable::schema(options.table),
                 .schemaFile = "version.sql",
                 .readTable = LockTable::read(options.table),
                 .tells = true},
                environment),
        pool_(opener_, options.connections),
        cancelling_(opener_, 1) {}

  Clock& clock() { return opener_.clock(); }
  const std::string& display() const { return opener_.display(); }
  Promises promises() const { return {opener_.fencePromise(), opener_.durability()}; }

  /// For what must not wait until one of the others is free.
  SessionPool& cancelling() { return cancelling_; }

  /// Lets `call` use the table on one session until `deadline`. Throws lockkeeper's errors.
  template <class Call>
  auto onTable(Instant deadline, Call call);

  const ForkGuard forkGuard;

 private:
  const LockTable::Texts texts_;
  SessionOpener opener_;
  SessionPool pool_;
  SessionPool cancelling_;
};

template <class Call>
auto VersionDriver::Impl::onTable(Instant deadline, Call call) {
  forkGuard.check();
  if (clock().now() >= deadline) throw StoreUnavailable(opener_.display() + ": no time was left to ask");
  SessionPool::Use session(pool_, deadline);
  LockTable table(session, texts_, deadline);
  auto result = call(table);
  session.keep();
  return result;
}

VersionDriver::VersionDriver(const StoreUri& uri, const Environment& environment)
    : RateTable(uri, environment), impl_(std::make_unique<Impl>(VersionOptions::fromUri(uri), environment)) {}

VersionDriver::~VersionDriver() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult VersionDriver::acquire(const AcquireRequest& request) {
  return impl_->onTable(request.deadline, [&](LockTable& table) -> AcquireResult {
    const Instant leasedFrom = impl_->clock().now();
    // A claim that was sent before may have its fence already, and no others.
    const std::uint32_t turns = request.resend ? 1 : request.turns;
    const auto answer = table.claim(request.claim, request.ttl, turns);
    if (const auto* fence = std::get_if<Fence>(&answer))
      return Granted{leasedFrom, request.ttl, *fence, turns};
    return Busy{std::chrono::ceil<std::chrono::milliseconds>(std::get<std::chrono::microseconds>(answer))};
  });
}

void VersionDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Renewal*> all;
  all.reserve(renewals.size());
  for (Renewal& each : renewals) {
    each.outcome = RenewOutcome::unavailable;
    all.push_back(&each);
  }
  for (std::span<Renewal*> rest(all); !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), LockTable::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    try {
      impl_->onTable(deadline, [&](LockTable& table) {
        const Instant leasedFrom = impl_->clock().now();
        for (Renewal* each : batch) {
          each->leasedFrom = leasedFrom;
          each->leasedFor = each->ttl;
        }
        table.renew(batch, impl_->cancelling());
        return true;
      });
    } catch (const Error& error) {
      for (Renewal* each : batch) {
        if (error.code() == ErrorCode::outcomeUnknown) each->outcome = RenewOutcome::unknown;
        each->cause = error.what();
      }
    }
  }
}

ReleaseOutcome VersionDriver::release(const Claim& claim, Instant deadline) {
  const bool released = impl_->onTable(deadline, [&](LockTable& table) { return table.release(claim); });
  return released ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::optional<Holder> VersionDriver::holder(std::string_view key, Instant deadline) {
  return impl_->onTable(deadline, [&](LockTable& table) { return table.holder(key); });
}

std::string VersionDriver::name() const { return impl_->display(); }

Promises VersionDriver::promises() const {
  impl_->forkGuard.check();
  return impl_->promises();
}

void VersionDriver::list(std::string_view prefix,
                         const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                         Instant deadline) {
  std::string last;
  for (;;) {
    const auto page = impl_->onTable(deadline, [&](LockTable& table) { return table.page(prefix, last); });
    if (page.empty()) return;
    for (const auto& [key, holder] : page) {
      if (!visit(key, holder)) return;
    }
    last = page.back().first;
  }
}

bool VersionDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  return impl_->onTable(deadline, [&](LockTable& table) {
    return table.breakLock(key, shown == nullptr ? std::nullopt : shown->fence);
  });
}

}  // namespace lockkeeper::mysql
