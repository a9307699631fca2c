#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "legacy/legacy_value.h"
#include "lockkeeper/redis/legacy_options.h"
#include "wire/protocol/resp.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

/// One use of scripts/legacy/legacy.lua on one key: the words, which must live until they are added to a
/// request.
class LegacyCall {
 public:
  /// For all that has to do with a claim.
  LegacyCall(const LegacyOptions& options, const Claim& claim,
             std::chrono::milliseconds ttl = std::chrono::milliseconds{0});
  /// For a look only.
  LegacyCall(const LegacyOptions& options, std::string_view key);

  /// `expired` is a value that was seen to have expired; empty for none.
  void addTo(Request& request, Script::By by, std::string_view operation,
             std::string_view expired = {}) const;

 private:
  const std::string key_;
  const std::string companion_;  // empty unless values are digits only
  const std::string suffix_;
  const std::string ttl_;
};

/// What the script has answered.
struct LegacyReply {
  bool done = false;
  LegacyValue value{};  ///< What it met, unless done.
  std::string text{};   ///< The bytes of `value`, unless done.
  std::optional<std::chrono::milliseconds> ttl{};
  std::chrono::milliseconds now{};  ///< The server's wall clock.

  /// How long until the key is free: when its value has expired by `skewAllowance`, or its TTL has ended.
  /// 0 or less: free now. Empty: never.
  std::optional<std::chrono::milliseconds> remaining(std::chrono::milliseconds skewAllowance) const;

  /// A lock that may be taken over.
  bool expired(std::chrono::milliseconds skewAllowance) const;
};

/// Empty for a reply of another form.
std::optional<LegacyReply> parseLegacyReply(const Reply& reply);

}  // namespace lockkeeper::redis
