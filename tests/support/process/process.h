#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockkeeper::test {

struct ProcessOptions {
  std::map<std::string, std::string> environment{};  ///< Added to the test's own.
  std::filesystem::path standardInput = "/dev/null";
  std::filesystem::path standardOutput = "/dev/null";
  std::filesystem::path standardError = "/dev/null";
};

/// A child process, killed and reaped when the object ends. It is also killed when the thread that started it
/// dies, so that nothing survives a crashed test: start it from a thread that lives at least as long. It
/// inherits no open file but its three streams. One thread at a time.
class Process {
 public:
  /// Throws std::system_error when the program cannot be started. `command[0]` is looked up in PATH.
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {});
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  /// Does nothing when the process has been reaped or moved from.
  void signal(int number) const;
  /// SIGSTOP; returns when the kernel has stopped it. Throws std::runtime_error when it does not stop.
  void pause() const;
  void resume() const { signal(SIGCONT); }
  bool running();

  /// Its exit code, or 128 + n when signal n ended it; empty when it still runs after `bound`. Blocks.
  std::optional<int> waitFor(std::chrono::milliseconds bound);

 private:
  void reap(int flags);

  pid_t pid_ = -1;
  std::optional<int> exitCode_;
};

struct Finished {
  int exitCode;
  std::string output;
  std::string errors;
};

/// Runs a command to its end and returns what it wrote; `options` may name its input and its environment.
/// Throws std::runtime_error, naming the command, when it has not ended after `bound`.
Finished runToEnd(const std::vector<std::string>& command, ProcessOptions options = {},
                  std::chrono::milliseconds bound = std::chrono::seconds{60});

}  // namespace lockkeeper::test
