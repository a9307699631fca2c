#include "simulation/machine/fiber.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>

extern "C" {
/// Saves the registers that a callee keeps, and the stack pointer at `*saved`, and goes on with those that
/// lie at `next`, and with the thread-local variables at `threadPointer`.
void lockkeeperChangeStack(void** saved, void* next, void* threadPointer) noexcept;
[[noreturn]] void lockkeeperLeaveStack(void* next, void* threadPointer) noexcept;
/// Where a fiber begins: calls r12 with the argument rbx.
void lockkeeperBeginStack() noexcept;
}

asm(R"(
  .text
  .globl lockkeeperChangeStack
  .type lockkeeperChangeStack, @function
lockkeeperChangeStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rdi
  movq %rdx, %rsi
  .globl lockkeeperLeaveStack
  .type lockkeeperLeaveStack, @function
lockkeeperLeaveStack:
  wrfsbase %rsi
  movq %rdi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size lockkeeperChangeStack, . - lockkeeperChangeStack
  .globl lockkeeperBeginStack
  .type lockkeeperBeginStack, @function
lockkeeperBeginStack:
  movq %rbx, %rdi
  call *%r12
  ud2
  .size lockkeeperBeginStack, . - lockkeeperBeginStack
)");

namespace lockkeeper::simulation {
namespace {

// What the frames of the sleeping thread, below the one that is looked at, may need.
constexpr std::uintptr_t sleepingFrames = 16384;

void* ownThreadPointer() noexcept {
  void* pointer = nullptr;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

struct Start {
  Fiber* fiber;
  sem_t sleeps;
};

}  // namespace

Fiber::Fiber() noexcept : thread_(pthread_self()), threadPointer_(ownThreadPointer()) {}

Fiber::Fiber(StartThread startThread) {
  Start start{.fiber = this, .sleeps = {}};
  sem_init(&start.sleeps, 0, 0);
  const int failure = startThread(&thread_, nullptr, &Fiber::sleep, &start);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), "pthread_create");
  while (sem_wait(&start.sleeps) != 0) continue;
  sem_destroy(&start.sleeps);
}

void* Fiber::sleep(void* given) {
  auto& start = *static_cast<Start*>(given);
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  start.fiber->threadPointer_ = ownThreadPointer();
  start.fiber->top_ = reinterpret_cast<char*>((frame - sleepingFrames) & ~std::uintptr_t{15});
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  sem_post(&start.sleeps);
  for (;;) pause();
}

void Fiber::begin(void (*entry)(void*), void* argument) noexcept {
  void** place = reinterpret_cast<void**>(top_);
  *--place = reinterpret_cast<void*>(&lockkeeperBeginStack);
  *--place = nullptr;                              // rbp
  *--place = argument;                             // rbx
  *--place = reinterpret_cast<void*>(entry);       // r12
  for (int i = 0; i < 3; ++i) *--place = nullptr;  // r13, r14, r15
  stack_ = place;
}

void Fiber::changeTo(Fiber& next) noexcept {
  lockkeeperChangeStack(&stack_, next.stack_, next.threadPointer_);
}

void Fiber::leaveFor(Fiber& next) noexcept { lockkeeperLeaveStack(next.stack_, next.threadPointer_); }

}  // namespace lockkeeper::simulation
