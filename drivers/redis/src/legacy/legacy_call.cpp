#include "legacy/legacy_call.h"

#include <algorithm>
#include <array>
#include <span>

#include "store/companion_key.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;
using Kind = LegacyValue::Kind;

std::string companionOf(const LegacyOptions& options, const std::string& key) {
  return options.pure ? companionKey(key, "holder").string() : std::string();
}

}  // namespace

LegacyCall::LegacyCall(const LegacyOptions& options, const Claim& claim, milliseconds ttl)
    : key_(options.keyPrefix + std::string(claim.key)),
      companion_(companionOf(options, key_)),
      suffix_(legacySuffix(claim)),
      ttl_(std::to_string(ttl.count())) {}

LegacyCall::LegacyCall(const LegacyOptions& options, std::string_view key)
    : key_(options.keyPrefix + std::string(key)), companion_(companionOf(options, key_)), ttl_("0") {}

void LegacyCall::addTo(Request& request, Script::By by, std::string_view operation,
                       std::string_view expired) const {
  const std::array<std::string_view, 2> keys = {key_, companion_};
  const std::array<std::string_view, 4> arguments = {operation, suffix_, ttl_, expired};
  Script::legacy().addTo(request, by, std::span(keys).first(companion_.empty() ? 1 : 2), arguments);
}

std::optional<milliseconds> LegacyReply::remaining(milliseconds skewAllowance) const {
  if (value.kind == Kind::free) return milliseconds{0};
  if (value.kind == Kind::foreign) return ttl;
  // Legacy clients compare whole seconds, with "greater than".
  const milliseconds rest = value.ends + std::chrono::seconds{1} + skewAllowance - now;
  return ttl ? std::min(rest, *ttl) : rest;
}

bool LegacyReply::expired(milliseconds skewAllowance) const {
  const bool lock = value.kind == Kind::digits || value.kind == Kind::withToken;
  return lock && remaining(skewAllowance) <= milliseconds{0};
}

std::optional<LegacyReply> parseLegacyReply(const Reply& reply) {
  if (reply.kind != ReplyKind::array || reply.items.empty()) return std::nullopt;
  if (reply.items[0].isInteger(1) && reply.items.size() == 1) return LegacyReply{.done = true};
  if (!reply.items[0].isInteger(0) || reply.items.size() != 5) return std::nullopt;
  const Reply& type = reply.items[1];
  const Reply& text = reply.items[2];
  const Reply& ttl = reply.items[3];
  const Reply& now = reply.items[4];
  if (type.kind != ReplyKind::bulk || text.kind != ReplyKind::bulk) return std::nullopt;
  if (ttl.kind != ReplyKind::integer || now.kind != ReplyKind::integer) return std::nullopt;
  LegacyReply result{
      .value = parseLegacyValue(type.text, text.text), .text = text.text, .now = milliseconds{now.integer}};
  if (ttl.integer >= 0) result.ttl = milliseconds{ttl.integer};
  return result;
}

}  // namespace lockkeeper::redis
