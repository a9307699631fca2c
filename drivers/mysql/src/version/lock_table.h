#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hosts/session_pool.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::mysql {

/// The statements on the table of locks, on one session until a deadline. Each is one round trip and a
/// transaction of its own. All throw what SessionPool::Use::ask() does.
class LockTable {
 public:
  /// What they say of one table.
  struct Texts {
    explicit Texts(const std::string& itsTable);

    const std::string table;  ///< Its name, quoted.
    const std::string claim;
    const std::string release;
  };

  /// Byte strings, no gap locks, short waits for rows.
  static const char* const setUp;
  static std::string schema(const std::string& table);
  /// Reads the table, and answers nothing.
  static std::string read(const std::string& table);

  /// `texts` must outlive it.
  LockTable(SessionPool::Use& session, const Texts& texts, Instant deadline)
      : session_(session), texts_(texts), deadline_(deadline) {}

  /// The first of so many fences in a row, when the claim holds the key now; else how long the present lease
  /// goes on. A claim that has held it before gets its last fence, and no more of them.
  std::variant<Fence, std::chrono::microseconds> claim(const Claim& claim, std::chrono::milliseconds ttl,
                                                       std::uint32_t fences);

  /// False when the claim does not hold the key.
  bool release(const Claim& claim);

  /// Renews the leases and writes the outcome of each; at most renewalsAtOnce. Those whose rows others keep
  /// stay behind: `cancelling` ends the wait for them.
  void renew(std::span<Renewal* const> renewals, SessionPool& cancelling);

  /// As many as LockManager passes: one answer for all of them, however late it comes. With the longest keys
  /// their statement has 1.2 MB; servers take 16 MB and more by default.
  static constexpr std::size_t renewalsAtOnce = 1024;

  std::optional<Holder> holder(std::string_view key);

  /// Some keys after `after` that start with `prefix` and are held, in order, with their holders; none when
  /// there are no more.
  std::vector<std::pair<std::string, Holder>> page(std::string_view prefix, const std::string& after);

  /// False when the key is free.
  bool breakLock(std::string_view key, std::optional<Fence> version);

 private:
  void renewUnkept(std::span<Renewal* const> renewals);
  std::string update(std::span<Renewal* const> renewals) const;
  std::string select(std::span<Renewal* const> renewals) const;
  const Reply& ask(const std::string& statement) { return session_.ask(statement, deadline_); }

  SessionPool::Use& session_;
  const Texts& texts_;
  const Instant deadline_;
};

}  // namespace lockkeeper::mysql
