#pragma once

#include <memory>
#include <string>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

/// What every user of a MySQL server does: locks of both kinds, several at once, shares, limits, and sales.
/// Each run opens sessions of its own, so that they begin with the server's present defaults.
class ShortChapter {
 public:
  /// `login` is user:password@host:port/database. Makes the tables.
  explicit ShortChapter(std::string login);

  /// Throws what the library throws, and std::runtime_error that says what went otherwise than promised.
  void run() const;

 private:
  std::shared_ptr<LockDriver> open(const std::string& scheme, const std::string& query = "") const;
  void exclude(LockDriver& holder, LockDriver& other) const;
  void takeSeveral(LockDriver& holder, LockDriver& other) const;
  void share(LockDriver& holder, LockDriver& other) const;
  void limit(const std::shared_ptr<LockDriver>& driver) const;
  void sell(bool makesTables = false) const;

  const std::string login_;
};

}  // namespace lockkeeper::test
