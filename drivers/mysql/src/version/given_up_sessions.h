#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "hosts/session_pool.h"

namespace lockkeeper::mysql {

/// Sessions that were closed while a statement was under way. Their server may read it late, or wait for a
/// row on its behalf: it would take a key for nobody, or give a lease another end than a newer statement has
/// given it. So those sessions are ended on their server before it is asked for anything else. Not those
/// behind a proxy with sessions of its own, which cannot be told apart. Thread-safe.
class GivenUpSessions {
 public:
  /// Remembers it, and has it closed.
  void add(SessionPool::Use& use);

  /// Returns when none of their statements can have an effect any more on the server of `use`. Throws
  /// StoreUnavailable when that is not so by `deadline`.
  void end(SessionPool::Use& use, Instant deadline);

 private:
  struct Session {
    std::string server;
    std::uint64_t id;
    std::string client;  ///< ServerSession::clientName().

    friend bool operator==(const Session&, const Session&) = default;
  };
  /// The condition on the server's list of sessions that is true of these.
  static std::string isOneOf(const std::vector<Session>& sessions);
  void forget(const std::vector<Session>& sessions);

  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::vector<Session> sessions_;
};

}  // namespace lockkeeper::mysql
