#pragma once

#include <pthread.h>

namespace lockkeeper::simulation {

/// A stack and the thread-local variables of a thread of the C library, on which the thread that runs a
/// simulation works in that one's place. So the threads of a run are threads to all code, and the change from
/// one to another takes as long as saving a few registers, not as long as waking up a thread.
class Fiber {
 public:
  /// What the calling thread runs on by itself.
  Fiber() noexcept;
  /// Another one, whose thread sleeps for ever. `startThread` is a pthread_create(). Throws
  /// std::system_error.
  using StartThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  explicit Fiber(StartThread startThread);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  pthread_t thread() const noexcept { return thread_; }

  /// The next change to this fiber calls `entry(argument)` on an empty stack. It must not return.
  void begin(void (*entry)(void*), void* argument) noexcept;
  /// Goes on where `next` stands, until somebody changes back to this fiber, on which the caller runs.
  void changeTo(Fiber& next) noexcept;
  /// The same for a caller that has ended.
  [[noreturn]] static void leaveFor(Fiber& next) noexcept;

 private:
  static void* sleep(void* self);

  pthread_t thread_;
  void* threadPointer_ = nullptr;  // where the thread-local variables are
  char* top_ = nullptr;            // the free part of the stack is below it
  void* stack_ = nullptr;          // the stack pointer, while it does not run
};

}  // namespace lockkeeper::simulation
