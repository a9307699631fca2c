#pragma once

namespace lockkeeper::detail {

/// Calls a hook of the application. What it throws is dropped: a broken metric must not break a lock.
template <class Hook>
void notify(Hook&& hook) noexcept {
  try {
    hook();
  } catch (...) {
  }
}

}  // namespace lockkeeper::detail
