#pragma once

#include "lockkeeper/driver/capabilities.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// The noticeboards of one server. A board is a hash under a name that no lock may have. It has a connection
/// of its own, made by the first call, so that heartbeats do not wait behind locks. Thread-safe.
class RedisNotices final : public Noticeboard {
 public:
  RedisNotices(RedisOptions options, Environment environment);

  std::vector<Notice> pin(std::string_view board, std::string_view name, std::string_view text,
                          std::optional<std::chrono::milliseconds> keep, Instant deadline) override;
  std::vector<Notice> notices(std::string_view board, Instant deadline) override;
  bool replace(std::string_view board, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, Instant deadline) override;
  void unpin(std::string_view board, std::string_view name, Instant deadline) override;

 private:
  const Reply& answer(const Request& request);
  std::vector<Notice> noticesIn(const Request& request);

  RedisStore store_;
};

}  // namespace lockkeeper::redis
