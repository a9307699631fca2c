#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

/// A bounded number of sessions, any of which serves any caller. Opened when needed. Thread-safe.
class SessionPool {
 public:
  using Opener = std::function<std::unique_ptr<ServerSession>(Instant deadline)>;

  SessionPool(Opener open, std::size_t most, std::string display, std::shared_ptr<Clock> clock);

  /// The use of one session, by one thread. Closes it, unless it is to be kept.
  class Use {
   public:
    /// Blocks until `deadline`, and the opening of a session besides. Throws StoreUnavailable and
    /// ConfigError.
    Use(SessionPool& pool, Instant deadline);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

    ServerSession& session() { return *session_; }

    /// The session is sound, no reply is due and no transaction open.
    void keep() { keep_ = true; }

   private:
    SessionPool& pool_;
    std::unique_ptr<ServerSession> session_;
    bool keep_ = false;
  };

 private:
  std::unique_ptr<ServerSession> take(Instant deadline);
  void putBack(std::unique_ptr<ServerSession> session);

  const Opener open_;
  const std::size_t most_;
  const std::string display_;
  const std::shared_ptr<Clock> clock_;

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<ServerSession>> idle_;
  std::size_t used_ = 0;
};

}  // namespace lockkeeper::mysql
