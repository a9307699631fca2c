#include "inspect/json.h"

#include <iostream>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/utf8.h"

namespace lockkeeper::cli {

// What is not ASCII is escaped: it could control a terminal.
Poco::JSON::Object newObject() {
  return Poco::JSON::Object(Poco::JSON_PRESERVE_KEY_ORDER | Poco::JSON_ESCAPE_UNICODE);
}

void setText(Poco::JSON::Object& object, const std::string& name, std::string_view text) {
  if (isUtf8(text)) {
    object.set(name, std::string(text));
    return;
  }
  object.set(name, printable(text, text.size()));
  object.set(name + "Hex", toHex(text));
}

void setOwner(Poco::JSON::Object& object, const std::string& owner) {
  if (owner.empty()) {
    object.set("owner", Poco::Dynamic::Var());
  } else {
    setText(object, "owner", owner);
  }
}

void setLength(Poco::JSON::Object& object, const char* name,
               std::optional<std::chrono::milliseconds> length) {
  object.set(name, length ? Poco::Dynamic::Var(length->count()) : Poco::Dynamic::Var());
}

namespace {

void setShare(Poco::JSON::Object& object, const std::optional<Share>& share) {
  if (!share) return;
  object.set("permits", share->weight);
  object.set("limit", share->limit);
}

}  // namespace

Poco::JSON::Object jsonOf(std::string_view key, const Holder& holder) {
  Poco::JSON::Object object = newObject();
  setText(object, "key", key);
  setOwner(object, holder.owner);
  setLength(object, "remainingMs", holder.remaining);
  object.set("fence", holder.fence ? Poco::Dynamic::Var(*holder.fence) : Poco::Dynamic::Var());
  setShare(object, holder.share);
  return object;
}

Poco::JSON::Object jsonOf(const Waiter& waiter) {
  Poco::JSON::Object object = newObject();
  setOwner(object, waiter.owner);
  setLength(object, "waitedMs", waiter.waited);
  setShare(object, waiter.share);
  return object;
}

void printLine(const Poco::JSON::Object& object) {
  object.stringify(std::cout);
  std::cout << std::endl;
}

}  // namespace lockkeeper::cli
