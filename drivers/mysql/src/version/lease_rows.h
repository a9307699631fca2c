#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "hosts/session_pool.h"
#include "lockkeeper/driver/driver.h"
#include "version/texts/lock_texts.h"

namespace lockkeeper::mysql {

/// Rows with leases, on one session until a deadline; a table of such. All calls throw what
/// SessionPool::Use::ask() does.
class LeaseRows {
 public:
  /// `texts` must outlive it.
  LeaseRows(SessionPool::Use& session, const LockTexts& texts, Instant deadline)
      : session_(session), texts_(texts), deadline_(deadline) {}
  LeaseRows(const LeaseRows&) = delete;
  LeaseRows& operator=(const LeaseRows&) = delete;
  virtual ~LeaseRows() = default;

  /// Renews the leases and writes the outcome of each; at most renewalsAtOnce. Those whose rows others keep
  /// stay behind: `cancelling` ends the wait for them.
  void renew(std::span<Renewal* const> renewals, SessionPool& cancelling);

  /// As many as LockManager passes: one answer for all of them, however late it comes. With the longest keys
  /// their statement has 1.2 MB; servers take 16 MB and more by default.
  static constexpr std::size_t renewalsAtOnce = 1024;

  using Tokens = std::set<std::string>;

 protected:
  using Renewals = std::span<Renewal* const>;

  /// Renews them together, and returns the tokens of those that hold what they claim; nothing when all do.
  virtual std::optional<Tokens> renewAll(Renewals renewals, SessionPool& cancelling) = 0;
  /// The statements that renew those of them which hold what they claim.
  virtual std::string update(Renewals renewals) const = 0;
  /// The statement that finds the tokens of these.
  virtual std::string select(Renewals renewals) const = 0;

  const Reply& ask(const std::string& statements) { return session_.ask(statements, deadline_); }
  /// The same, but whoever keeps the rows of the first statement is not waited for to the end.
  const Reply& askOrCancel(const std::string& statements, SessionPool& cancelling);

  static Tokens tokensIn(const Reply& reply);
  /// Rows of these claims, as a condition on the columns lock_key and token, which are called so with
  /// `prefix`.
  static std::string anyOf(Renewals renewals, const std::string& prefix = {});
  /// The ttl of each in microseconds, as an expression: as a rule, all have one.
  static std::string ttls(Renewals renewals);

  SessionPool::Use& session_;
  const LockTexts& texts_;
  const Instant deadline_;

 private:
  void renewUnkept(Renewals renewals);
};

}  // namespace lockkeeper::mysql
