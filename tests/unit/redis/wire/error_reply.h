#pragma once

#include <string>
#include <utility>

#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// The reply of a server that refuses a command.
inline Reply errorReply(std::string text) {
  return {.kind = ReplyKind::error, .integer = 0, .text = std::move(text), .items = {}};
}

}  // namespace lockkeeper::redis
