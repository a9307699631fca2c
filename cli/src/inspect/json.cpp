#include "inspect/json.h"

#include <iostream>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/hex.h"
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
  std::string bytes;
  for (const char each : text) appendHex(bytes, static_cast<unsigned char>(each));
  object.set(name + "Hex", bytes);
}

Poco::JSON::Object jsonOf(std::string_view key, const Holder& holder) {
  const Poco::Dynamic::Var none;
  Poco::JSON::Object object = newObject();
  setText(object, "key", key);
  if (holder.owner.empty()) {
    object.set("owner", none);
  } else {
    setText(object, "owner", holder.owner);
  }
  object.set("remainingMs", holder.remaining ? Poco::Dynamic::Var(holder.remaining->count()) : none);
  object.set("fence", holder.fence ? Poco::Dynamic::Var(*holder.fence) : none);
  if (holder.share) {
    object.set("permits", holder.share->weight);
    object.set("limit", holder.share->limit);
  }
  return object;
}

void printLine(const Poco::JSON::Object& object) {
  object.stringify(std::cout);
  std::cout << std::endl;
}

}  // namespace lockkeeper::cli
