#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/owner/owner_token.h"
#include "lockkeeper/poco/export.h"

namespace lockkeeper::poco {

/// The holder's end of a pipe that passes an OwnerToken to child processes, as `lockkeeper run` does. They
/// read it by InheritedOwner. When the pipe is closed, also because this process ends, they know that the
/// owner has released the lock. A forked child that does not call exec() must close() its copy as well. Not
/// thread-safe.
class LOCKKEEPER_POCO_EXPORT OwnerPipe {
 public:
  /// Names the descriptors to read, by numbers with ',' between them: of this pipe, and of those that this
  /// process has inherited itself.
  static constexpr const char* variable = "LOCKKEEPER_OWNER_FD";

  /// Throws std::system_error if there is no descriptor left.
  explicit OwnerPipe(const OwnerToken& token);
  OwnerPipe(const OwnerPipe&) = delete;
  OwnerPipe& operator=(const OwnerPipe&) = delete;
  ~OwnerPipe();

  /// What the processes read. It is closed by exec(): clear FD_CLOEXEC between fork() and exec() of those
  /// that work for the owner.
  [[nodiscard]] int descriptor() const noexcept { return read_; }
  /// The value of `variable` for them.
  [[nodiscard]] std::string value() const;

  /// Tells the child processes that the owner does not hold the lock any more.
  void close() noexcept;

 private:
  int read_ = -1;
  int write_ = -1;
};

/// The locks that a parent process holds for this one: `lockkeeper run`, or another program with an
/// OwnerPipe. A thread watches their pipes; keep the object as long as its tokens are used. Child processes
/// of this one inherit the pipes as well and work for the same owner, unless it closes the descriptors.
///
/// Thread-safe. A forked child may only destroy its copy.
class LOCKKEEPER_POCO_EXPORT InheritedOwner {
 public:
  /// Reads what OwnerPipe::variable names. A descriptor that is closed, or is not such a pipe, is ignored.
  /// Throws std::system_error if there is no thread or descriptor left.
  InheritedOwner();
  InheritedOwner(const InheritedOwner&) = delete;
  InheritedOwner& operator=(const InheritedOwner&) = delete;
  ~InheritedOwner();

  /// For withOwner().
  [[nodiscard]] std::vector<OwnerToken> tokens() const;

  /// Reports at once which locks have ended, even if the thread has not seen it yet. Does not block.
  void look() noexcept;

 private:
  class Watch;
  const ForkGuard forkGuard_;
  std::unique_ptr<Watch> watch_;  // null when there is nothing to watch
};

}  // namespace lockkeeper::poco
