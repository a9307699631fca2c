#pragma once

#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::mysql {

/// The statements on the table of locks, on one session. What is asked most is prepared once. All throw
/// Poco's exceptions, after which the session must be closed. One thread at a time.
class LockTable {
 public:
  /// Prepares the session for them: byte strings, no gap locks, short waits for rows. Sends statements.
  LockTable(Poco::Data::Session session, const std::string& table);

  void create();

  /// The fence, when the claim holds the key now; else how long the present lease goes on.
  std::variant<Fence, std::chrono::microseconds> claim(const Claim& claim, std::chrono::milliseconds ttl);

  /// False when the claim does not hold the key.
  bool release(const Claim& claim);

  /// Renews the leases, which have one ttl, and writes the outcome of each; at most renewalsAtOnce.
  void renew(std::span<Renewal* const> renewals);
  static constexpr std::size_t renewalsAtOnce = 100;

  std::optional<Holder> holder(std::string_view key);

  /// Some keys after `after` that start with `prefix` and are held, in order, with their holders; none when
  /// there are no more.
  std::vector<std::pair<std::string, Holder>> page(std::string_view prefix, const std::string& after);

  /// False when the key is free.
  bool breakLock(std::string_view key, std::optional<Fence> version);

 private:
  Poco::Data::Statement prepared(const std::string& text);

  Poco::Data::Session session_;
  const std::string table_;

  // Bound to the prepared statements.
  std::string key_;
  std::string token_;
  std::string owner_;
  std::int64_t ttl_ = 0;
  std::optional<Poco::Data::Statement> claim_;
  std::optional<Poco::Data::Statement> release_;
};

}  // namespace lockkeeper::mysql
