#include "lock/node/rights.h"

#include <array>
#include <string>

#include "scripts.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

namespace {

bool mayNotRun(const Reply& reply) {
  return isError(reply, "NOPERM") && reply.text.find("permissions to run") != std::string::npos;
}

}  // namespace

void Rights::ask(std::string_view key, Instant deadline) {
  const Script& script = Script::of<scripts::missing_rights>();
  const ComposedText own = companionKey(key, "rights");
  const ComposedText counter = companionKey(key, "fence");
  const ComposedText order = companionKey(key, "queue");
  const ComposedText waiters = companionKey(key, "waiters");
  const std::array<std::string_view, 5> keys = {own, key, counter, order, waiters};
  const std::uint64_t server = server_;
  Request wire;
  script.addTo(wire, Script::By::text, keys, {});
  // Whether EVALSHA is permitted: a claim without a fence does not need it, but its release does.
  script.addTo(wire, Script::By::digest, keys, {});
  try {
    store_.execute(wire, deadline);
  } catch (const OutcomeUnknown& error) {
    throw StoreUnavailable(std::string(error.what()) + "; the claim was not sent");
  }
  const Reply& reply = wire.reply(0);
  // What keeps a server from answering now keeps it from granting the claim: that says so.
  if (reply.kind == ReplyKind::error && !isError(reply, "NOPERM")) return;
  std::string missing;
  if (reply.kind == ReplyKind::error) {
    missing = mayNotRun(reply) ? "+eval" : "the key or those beside it";
  } else if (reply.kind != ReplyKind::array) {
    store_.unexpected(wire);
  }
  for (const Reply& each : reply.items) missing.append(missing.empty() ? "" : " ").append(each.text);
  if (mayNotRun(wire.reply(1))) missing.append(missing.empty() ? "" : " ").append("+evalsha");
  if (missing.empty()) {
    completeOn_ = server;
    return;
  }
  throw ConfigError(store_.name() + " does not permit " + missing + "; locks need " +
                    std::string(queuePermissions));
}

}  // namespace lockkeeper::redis
