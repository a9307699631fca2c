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

const Script& Script::acquire() {
  static const Script& script = *new Script(scripts::acquire);
  return script;
}

const Script& Script::acquirePermits() {
  static const Script& script = *new Script(scripts::acquire_permits);
  return script;
}

const Script& Script::renewPermits() {
  static const Script& script = *new Script(scripts::renew_permits);
  return script;
}

const Script& Script::shareHolders() {
  static const Script& script = *new Script(scripts::share_holders);
  return script;
}

const Script& Script::waiters() {
  static const Script& script = *new Script(scripts::waiters);
  return script;
}

const Script& Script::acquireInOrder() {
  static const std::string& text =
      *new std::string("local function acquire(KEYS, ARGV)\n" + std::string(scripts::acquire) + "end\n" +
                       std::string(scripts::acquire_in_order));
  static const Script& script = *new Script(text);
  return script;
}

const Script& Script::renew() {
  static const Script& script = *new Script(scripts::renew);
  return script;
}

const Script& Script::release() {
  static const Script& script = *new Script(scripts::release);
  return script;
}

const Script& Script::holder() {
  static const Script& script = *new Script(scripts::holder);
  return script;
}

const Script& Script::breakLock() {
  static const Script& script = *new Script(scripts::break_lock);
  return script;
}

const Script& Script::rateTake() {
  static const Script& script = *new Script(scripts::rate_take);
  return script;
}

const Script& Script::rateRefund() {
  static const Script& script = *new Script(scripts::rate_refund);
  return script;
}

const Script& Script::legacy() {
  static const Script& script = *new Script(scripts::legacy);
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
