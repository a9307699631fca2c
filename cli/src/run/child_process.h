#pragma once

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockkeeper::cli {

/// The command was not started: exit 127 when there is none of that name, else 126.
class NotStarted : public std::runtime_error {
 public:
  NotStarted(int exitCode, const std::string& message) : std::runtime_error(message), exitCode_(exitCode) {}
  int exitCode() const { return exitCode_; }

 private:
  int exitCode_;
};

/// The command, as the leader of a process group of its own. It gets SIGTERM when this process is killed.
class ChildProcess {
 public:
  struct Setup {
    std::vector<std::string> command;                ///< Looked up in PATH.
    std::map<std::string, std::string> environment;  ///< Added to our own.
    sigset_t signalMask;
    std::optional<int> inherited{};  ///< A descriptor that it gets although exec() would close it.
  };

  /// Call on the main thread: the kernel takes the end of the calling thread for the end of the process.
  /// Throws NotStarted.
  explicit ChildProcess(const Setup& setup);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t group() const { return pid_; }
  /// False when none of its processes may be signalled: they run as another user.
  bool signalGroup(int number) const;
  /// False when all processes of the group have ended.
  bool groupLives() const;

  /// Reaps what has ended and looks what has become of the command, without waiting.
  void check();
  /// Its exit code, or 128 + n when signal n ended it; empty while it runs.
  std::optional<int> exitCode() const { return exitCode_; }
  /// The signal that has stopped it since the last call, such as that of Ctrl-Z.
  std::optional<int> stoppedBy();

 private:
  pid_t pid_;
  std::optional<int> exitCode_;
  std::optional<int> stoppedBy_;
};

}  // namespace lockkeeper::cli
