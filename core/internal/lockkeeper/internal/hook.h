#pragma once

#include <utility>

namespace lockkeeper {

/// For drivers and adapters: calls a hook of the application and drops what it throws, because a broken
/// metric must not break a lock. Blocks as long as the hook does.
template <class Hook, class... Arguments>
void callHook(Hook&& hook, Arguments&&... arguments) noexcept {
  try {
    std::forward<Hook>(hook)(std::forward<Arguments>(arguments)...);
  } catch (...) {
    // The hook's own affair.
  }
}

}  // namespace lockkeeper
