#pragma once

#include <string>
#include <string_view>

#include "lockkeeper/error.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// The class of an error reply ("NOSCRIPT"): the word that it starts with or, where a server puts "ERR"
/// before the error of a command inside a script, the class of that one. The rest may repeat what we have
/// sent, so no message contains it.
std::string_view errorClass(const Reply& error);

/// Whether `reply` is an error of the class `name`.
bool isError(const Reply& reply, std::string_view name);

/// Whether it is the error of a server that has done nothing, for a reason that passes.
bool isRefusal(const Reply& reply);

/// What a user of an ACL needs for locks that have no queue.
inline constexpr std::string_view lockPermissions =
    "+@connection +info +set +get +incr +del +pexpire +pttl +time +eval +evalsha +scan +wait, on its keys";

/// What it needs for those that have one, and can be shared.
inline constexpr std::string_view queuePermissions =
    "+@connection +info +set +get +incr +del +pexpire +pttl +time +eval +evalsha +scan +wait +exists +zadd "
    "+zrange +zrem +zscore +hget +hset +hdel, on its keys and {KEY}:lockkeeper:*";

/// What an error reply means to a caller.
struct ServerFault {
  ErrorCode code;
  std::string text;
};

/// What the error reply of `store` means: a ConfigError for a credential, a permission or a key of the wrong
/// type, StoreUnavailable where the server has refused the command before doing anything, otherwise
/// OutcomeUnknown. `needs` is what
/// a missing permission's message asks for.
ServerFault faultOf(const std::string& store, const Reply& error, std::string_view needs = lockPermissions);

/// Throws the class of Error that belongs to `code`.
[[noreturn]] void throwError(ErrorCode code, const std::string& text);

}  // namespace lockkeeper::redis
