#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/owner/owner_token.h"
#include "lockkeeper/poco/export.h"

namespace lockkeeper::poco {

/// The holder's end of a pipe that gives an OwnerToken to processes that are started, as `lockkeeper run`
/// does: they read it by InheritedOwner. Its closing, also by the end of this process, tells them that the
/// owner has let go of the lock; a forked child that does not call exec() has to close() its copy, too. Not
/// thread-safe.
class LOCKKEEPER_POCO_EXPORT OwnerPipe {
 public:
  /// Names the descriptors to read, by numbers with ',' between them: of this pipe, and of those that this
  /// process has inherited itself.
  static constexpr const char* variable = "LOCKKEEPER_OWNER_FD";

  /// Throws std::system_error where there is no descriptor for it.
  explicit OwnerPipe(const OwnerToken& token);
  OwnerPipe(const OwnerPipe&) = delete;
  OwnerPipe& operator=(const OwnerPipe&) = delete;
  ~OwnerPipe();

  /// What the processes read. It is closed by exec(): clear FD_CLOEXEC between fork() and exec() of those
  /// that work for the owner.
  [[nodiscard]] int descriptor() const noexcept { return read_; }
  /// The value of `variable` for them.
  [[nodiscard]] std::string value() const;

  /// Tells the processes that the lock is not the owner's any more.
  void close() noexcept;

 private:
  int read_ = -1;
  int write_ = -1;
};

/// The locks that a process has held for this one since it started it: `lockkeeper run`, or another one with
/// an OwnerPipe. A thread watches their pipes; keep the object as long as locks are taken by its tokens.
/// Processes that this one starts inherit the pipes, too, and work for the same owner, unless it closes the
/// descriptors.
///
/// Thread-safe. A forked child may only destroy its copy.
class LOCKKEEPER_POCO_EXPORT InheritedOwner {
 public:
  /// What OwnerPipe::variable names. A descriptor that is closed, or is not such a pipe, is left out: then
  /// the process works for nobody. Throws std::system_error where there is no thread or descriptor for it.
  InheritedOwner();
  InheritedOwner(const InheritedOwner&) = delete;
  InheritedOwner& operator=(const InheritedOwner&) = delete;
  ~InheritedOwner();

  /// For withOwner().
  [[nodiscard]] std::vector<OwnerToken> tokens() const;

  /// Tells at once of what has ended by now, which the thread may not have seen yet. Does not block.
  void look() noexcept;

 private:
  class Watch;
  const ForkGuard forkGuard_;
  std::unique_ptr<Watch> watch_;  // null when there is nothing to watch
};

}  // namespace lockkeeper::poco
