#include "wire/protocol/script.h"

#include <Poco/SHA1Engine.h>

#include <array>

#include "scripts.h"

namespace lockkeeper::redis {

namespace {

// When it is used first, and for ever.
template <const std::string_view& text>
const Script& made() {
  static const Script& script = *new Script(text);
  return script;
}

}  // namespace

std::string sha1(std::string_view text) {
  Poco::SHA1Engine engine;
  engine.update(text.data(), text.size());
  return Poco::DigestEngine::digestToHex(engine.digest());
}

Script::Script(std::string_view text) : text_(text), digest_(sha1(text)) {}

const Script& Script::acquire() { return made<scripts::acquire>(); }
const Script& Script::acquirePermits() { return made<scripts::acquire_permits>(); }
const Script& Script::renewPermits() { return made<scripts::renew_permits>(); }
const Script& Script::shareHolders() { return made<scripts::share_holders>(); }
const Script& Script::waiters() { return made<scripts::waiters>(); }
const Script& Script::renew() { return made<scripts::renew>(); }
const Script& Script::release() { return made<scripts::release>(); }
const Script& Script::holder() { return made<scripts::holder>(); }
const Script& Script::breakLock() { return made<scripts::break_lock>(); }
const Script& Script::rateTake() { return made<scripts::rate_take>(); }
const Script& Script::rateRefund() { return made<scripts::rate_refund>(); }
const Script& Script::legacy() { return made<scripts::legacy>(); }

const Script& Script::acquireInOrder() {
  static const std::string& text =
      *new std::string("local function acquire(KEYS, ARGV)\n" + std::string(scripts::acquire) + "end\n" +
                       std::string(scripts::acquire_in_order));
  static const Script& script = *new Script(text);
  return script;
}

void Script::addTo(Request& request, By by, std::span<const std::string_view> keys,
                   std::span<const std::string_view> arguments) const {
  const std::string keyCount = std::to_string(keys.size());
  const bool digest = by == By::digest;
  const std::array<std::string_view, 3> call = {digest ? "EVALSHA" : "EVAL",
                                                digest ? std::string_view(digest_) : text_, keyCount};
  request.add(call, keys, arguments);
}

}  // namespace lockkeeper::redis
