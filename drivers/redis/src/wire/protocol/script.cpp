#include "wire/protocol/script.h"

#include <Poco/SHA1Engine.h>

#include <array>

#include "scripts.h"

namespace lockkeeper::redis {

std::string sha1(std::string_view text) {
  Poco::SHA1Engine engine;
  engine.update(text.data(), text.size());
  return Poco::DigestEngine::digestToHex(engine.digest());
}

Script::Script(std::string_view text) : text_(text), digest_(sha1(text)) {}

const Script& Script::acquire() { return of<scripts::acquire>(); }
const Script& Script::acquirePermits() { return of<scripts::acquire_permits>(); }
const Script& Script::renewPermits() { return of<scripts::renew_permits>(); }
const Script& Script::shareHolders() { return of<scripts::share_holders>(); }
const Script& Script::waiters() { return of<scripts::waiters>(); }
const Script& Script::renew() { return of<scripts::renew>(); }
const Script& Script::release() { return of<scripts::release>(); }
const Script& Script::holder() { return of<scripts::holder>(); }
const Script& Script::breakLock() { return of<scripts::break_lock>(); }
const Script& Script::rateTake() { return of<scripts::rate_take>(); }
const Script& Script::rateRefund() { return of<scripts::rate_refund>(); }
const Script& Script::legacy() { return of<scripts::legacy>(); }

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
