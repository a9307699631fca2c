#include "lockkeeper/driver/fork_guard.h"

#include "base/fork_generation.h"
#include "lockkeeper/error.h"

namespace lockkeeper {

ForkGuard::ForkGuard() noexcept : generation_(detail::forkGeneration()) {}

bool ForkGuard::inherited() const noexcept { return generation_ != detail::forkGeneration(); }

void ForkGuard::check() const {
  if (inherited())
    throw ForkedError("this store's connections belong to the parent process: open the store again");
}

}  // namespace lockkeeper
