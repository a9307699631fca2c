#include "allocations.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace lockkeeper::test {

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

thread_local std::size_t allocations = 0;
thread_local std::size_t failingOne = never;
thread_local bool failed = false;

}  // namespace

std::size_t allocationsOfThisThread() noexcept { return allocations; }

FailingAllocation::FailingAllocation(std::size_t succeeding) noexcept {
  failed = false;
  failingOne = allocations + succeeding;
}

FailingAllocation::~FailingAllocation() { failingOne = never; }

bool FailingAllocation::happened() noexcept { return failed; }

static void* allocate(std::size_t size) {
  if (allocations++ == failingOne) {
    failed = true;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace lockkeeper::test

// The form for arrays calls this. The address sanitizer has a form of its own that does not throw.
void* operator new(std::size_t size) { return lockkeeper::test::allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
  try {
    return lockkeeper::test::allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
