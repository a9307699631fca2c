#pragma once

#include <cstdint>

namespace lockkeeper::test {

/// A TCP port of 127.0.0.1 that nobody listens on and that no other test gets until this process ends. It
/// lies below the range from which the kernel takes ports for outgoing connections, so a server that is
/// restarted finds it free again.
std::uint16_t freePort();

}  // namespace lockkeeper::test
