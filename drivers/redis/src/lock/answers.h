#pragma once

#include <string>

#include "wire/mux/channel.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

/// Throws what the error reply of `store` means to a caller; see faultOf(). `needs` are the rights that the
/// command takes.
[[noreturn]] void refuseAnswer(Channel& channel, const std::string& store, const Reply& reply,
                               std::string_view needs = lockPermissions);

/// The reply is of a form that this command does not have: ends the connection and throws ProtocolError.
[[noreturn]] void refuseForm(Channel& channel, const std::string& store);

}  // namespace lockkeeper::redis
