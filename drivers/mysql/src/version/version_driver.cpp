#include "lockkeeper/mysql/version_driver.h"

#include <Poco/Data/DataException.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/sql/connection_pool.h"
#include "lockkeeper/sql/server_check.h"
#include "lockkeeper/sql/sql_fault.h"
#include "version/lock_table.h"
#include "version/version_options.h"

namespace lockkeeper::mysql {
namespace {

sql::PoolOptions poolOptions(const VersionOptions& options, std::shared_ptr<Clock> clock) {
  return {.open = [server = options.server,
                   timeout = options.connectTimeout] { return sql::Connection::open(server, timeout); },
          .size = options.connections,
          .timeout = options.connectTimeout,
          .display = options.server.display,
          .clock = std::move(clock)};
}

}  // namespace

/// The connections, and what the driver's operations share.
class VersionDriver::Impl {
 public:
  Impl(VersionOptions given, Environment environment)
      : options_(std::move(given)),
        environment_(std::move(environment)),
        pool_(poolOptions(options_, environment_.clock)) {}

  Clock& clock() { return *environment_.clock; }
  std::string durability() const;
  const std::string& display() const { return options_.server.display; }

  /// Lets `call` use the table on one connection until `deadline`. Throws lockkeeper's errors.
  template <class Call>
  auto onTable(Instant deadline, Call call);

  const ForkGuard forkGuard;

 private:
  LockTable& tableOn(sql::ConnectionPool::Lease& lease);
  void note(const std::string& durability);
  [[noreturn]] void fail(const Poco::Exception& exception, bool sent);

  const VersionOptions options_;
  const Environment environment_;
  sql::ConnectionPool pool_;
  std::atomic<bool> tableMade_{false};

  mutable std::mutex mutex_;
  std::string durability_;
};

template <class Call>
auto VersionDriver::Impl::onTable(Instant deadline, Call call) {
  forkGuard.check();
  if (clock().now() >= deadline) throw StoreUnavailable(pool_.display() + ": no time was left to ask");
  bool sent = false;
  try {
    sql::ConnectionPool::Lease lease(pool_, deadline);
    LockTable& table = tableOn(lease);
    sent = true;
    auto result = call(table);
    lease.keep();
    return result;
  } catch (const Poco::Exception& exception) {
    fail(exception, sent);
  }
}

// A new connection is checked first.
LockTable& VersionDriver::Impl::tableOn(sql::ConnectionPool::Lease& lease) {
  std::shared_ptr<void>& companion = lease.connection().companion();
  if (!companion) {
    auto table = std::make_shared<LockTable>(lease.sql(), options_.table);
    note(sql::checkServer(lease.sql(), pool_.display()));
    if (options_.createTable && !tableMade_) {
      table->create();
      tableMade_ = true;
    }
    companion = std::move(table);
  }
  return *static_cast<LockTable*>(companion.get());
}

std::string VersionDriver::Impl::durability() const {
  const std::lock_guard guard(mutex_);
  return durability_.empty() ? "InnoDB: not connected yet" : durability_;
}

// Listeners are called outside the mutex, and once for each thing that there is to say.
void VersionDriver::Impl::note(const std::string& durability) {
  {
    const std::lock_guard guard(mutex_);
    if (durability_ == durability) return;
    durability_ = durability;
  }
  environment_.tell({.kind = EventKind::noted, .store = pool_.display(), .text = durability});
}

void VersionDriver::Impl::fail(const Poco::Exception& exception, bool sent) {
  const long number = sql::errorNumber(exception);
  const std::string message = pool_.display() + ": " + sql::reason(exception);
  constexpr long noSuchTable = 1146;
  constexpr long firstOfClient = 2000;
  constexpr long lastOfClient = 2999;
  if (number == noSuchTable) {
    throw ConfigError(
        message +
        ": run drivers/mysql/schema/version.sql (installed as share/lockkeeper/mysql/version.sql), "
        "or add createTable=true to the URI");
  }
  // The server has been made a replica; the next connection may lead to the one that took over.
  for (const long readOnly : {1290L, 1792L, 1836L}) {
    if (number == readOnly) throw StoreUnavailable(message);
  }
  const bool connecting = dynamic_cast<const Poco::Data::ConnectionFailedException*>(&exception) != nullptr;
  const bool ofServer = number != 0 && (number < firstOfClient || number > lastOfClient);
  const bool refusal = ofServer && sql::classify(exception) != sql::SqlFault::connectionLost;
  if (connecting || refusal) sql::throwAsError(exception, pool_.display());
  pool_.closeIdle();
  // The client library has no number and no words for a result that breaks off.
  const std::string lost = number == 0 ? pool_.display() + ": the connection broke" : message;
  if (sent) throw OutcomeUnknown(lost);
  throw StoreUnavailable(lost);
}

// RateTable takes more parameters than there are here: what is unknown must be said before it reads them.
VersionDriver::VersionDriver(const StoreUri& uri, Environment environment)
    : RateTable((static_cast<void>(VersionOptions::fromUri(uri)), uri), environment),
      impl_(std::make_unique<Impl>(VersionOptions::fromUri(uri), std::move(environment))) {}

VersionDriver::~VersionDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult VersionDriver::acquire(const AcquireRequest& request) {
  return impl_->onTable(request.deadline, [&](LockTable& table) -> AcquireResult {
    const Instant leasedFrom = impl_->clock().now();
    const auto answer = table.claim(request.claim, request.ttl);
    if (const auto* fence = std::get_if<Fence>(&answer)) return Granted{leasedFrom, request.ttl, *fence};
    return Busy{std::chrono::ceil<std::chrono::milliseconds>(std::get<std::chrono::microseconds>(answer))};
  });
}

void VersionDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Renewal*> byTtl;
  byTtl.reserve(renewals.size());
  for (Renewal& each : renewals) {
    each.outcome = RenewOutcome::unavailable;
    byTtl.push_back(&each);
  }
  std::ranges::stable_sort(byTtl, {}, [](const Renewal* each) { return each->ttl; });
  std::span<Renewal*> rest(byTtl);
  while (!rest.empty()) {
    const auto otherTtl =
        std::ranges::find_if(rest, [&](const Renewal* each) { return each->ttl != rest.front()->ttl; });
    const auto ofOneTtl = static_cast<std::size_t>(otherTtl - rest.begin());
    const auto batch = rest.first(std::min(ofOneTtl, LockTable::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    try {
      impl_->onTable(deadline, [&](LockTable& table) {
        const Instant leasedFrom = impl_->clock().now();
        for (Renewal* each : batch) {
          each->leasedFrom = leasedFrom;
          each->leasedFor = each->ttl;
        }
        table.renew(batch);
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
  return {.fence = FencePromise::durable, .durability = impl_->durability()};
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
