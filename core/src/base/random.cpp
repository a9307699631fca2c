#include "lockkeeper/base/random.h"

#include <errno.h>
#include <sys/random.h>

#include <array>
#include <cstring>
#include <limits>
#include <system_error>

#include "lockkeeper/base/fork_guard.h"

namespace lockkeeper {

namespace {

void readKernel(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

// One kernel call serves 64 tokens. By thread, so that no lock is needed.
struct Block {
  std::array<std::byte, 1024> bytes;
  std::size_t used = sizeof(bytes);
  ForkGuard filledBy;
};

class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> out) override {
    thread_local Block block;
    if (out.size() > block.bytes.size()) return readKernel(out);
    if (block.filledBy.inherited() || block.bytes.size() - block.used < out.size()) {
      readKernel(block.bytes);
      block.used = 0;
      block.filledBy = ForkGuard();
    }
    std::memcpy(out.data(), block.bytes.data() + block.used, out.size());
    block.used += out.size();
  }
};

}  // namespace

std::uint64_t Random::upTo(std::uint64_t bound) {
  std::uint64_t number = 0;
  fill(std::as_writable_bytes(std::span(&number, 1)));
  return bound == std::numeric_limits<std::uint64_t>::max() ? number : number % (bound + 1);
}

std::shared_ptr<Random> systemRandom() {
  static const auto& random = *new auto(std::make_shared<SystemRandom>());
  return random;
}

}  // namespace lockkeeper
