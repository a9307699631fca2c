#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// Locks on one MySQL (8 or later) or MariaDB (10.6 or later) server: GET_LOCK, turned into a lease. A lock
/// lives on a session whose wait_timeout is its ttl, in whole seconds: if the holder goes silent, the server
/// ends the session and with it the lock. A renewal is a statement on that session. Many locks share a few
/// sessions, which are opened when needed; a waiting claim has a session of its own, in the server's FIFO
/// queue.
///
/// ttl must be at least 1 s. Names are server-wide, whatever the database. Fences come from the table
/// lockkeeper_fences in the database.
///
/// URI: `mysql+getlock://user:password@host[:3306][,host2[:3306],…]/database` (of several hosts, the one that
/// takes the writes is used; its locks are lost when another one takes over), with the parameters
///
///     connections    16    the most sessions that hold locks; half of them at most wait
///     fence          on    off: no table is needed, grants carry no fence, holders no label
///     createTable    off   makes the table when it is missing
///     socket         -     path of a unix socket, instead of host and port
///     tls            off   encrypted, with the server's certificate and host name verified
///     caFile         -     PEM file of the authorities that tls trusts, instead of the system's own
///     verify         on    off: tls encrypts, whoever the server is
///     certFile       -     PEM file of our own certificate, for servers that ask for one
///     keyFile        -     PEM file of its key
///     connectTimeout 2s    whole seconds
///     ioTimeout      3s    what a call may take beyond its deadline
///     passwordFile   -     file whose first line is the password, instead of one in the URI
///
/// One background thread cuts off overdue reads; with several hosts, there is one more for each login under
/// way. The destructor waits for these, for connectTimeout at most. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_MYSQL_EXPORT GetLockDriver final : public LockDriver, public Waitable, public LossReporting {
 public:
  /// Connects nowhere yet. Throws ConfigError for a wrong URI.
  explicit GetLockDriver(const StoreUri& uri, const Environment& environment = {});
  GetLockDriver(const GetLockDriver&) = delete;
  GetLockDriver& operator=(const GetLockDriver&) = delete;
  ~GetLockDriver() override;

  /// Throws std::invalid_argument for a ttl below 1 s.
  AcquireResult acquire(const AcquireRequest& request) override;

  /// Returns Busy before `waitFor` has passed if no session is left to wait on.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;

  /// `remaining` is known only for locks of this driver object, and the owner's label only with fences.
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override;

  /// Reports the locks of a session that has ended, when a call for one of them finds that out; and those of
  /// all sessions with a server that has become read-only or was replaced by another one.
  void addLossListener(std::weak_ptr<LossListener> listener) override;
  /// RateDriver is a RateTable of the same URI.
  void* findCapability(const std::type_info& type) noexcept override;
  std::string_view whyNot(const std::type_info& type) const noexcept override {
    return type == typeid(Permits) ? "GET_LOCK has no shared mode" : "";
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::mysql
