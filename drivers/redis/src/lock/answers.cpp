#include "lock/answers.h"

namespace lockkeeper::redis {

void refuseAnswer(Channel& channel, const std::string& store, const Reply& reply, std::string_view needs) {
  const ServerFault fault = faultOf(store, reply, needs);
  // It was the master once; the next connection may lead to the one that took over.
  if (isError(reply, "READONLY")) channel.disconnect("the server is not the master any more");
  throwError(fault.code, fault.text);
}

void refuseForm(Channel& channel, const std::string& store) {
  const std::string why = "the server sent a reply of an unexpected form";
  channel.disconnect(why);
  throw ProtocolError(store + ": " + why);
}

}  // namespace lockkeeper::redis
