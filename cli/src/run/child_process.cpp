#include "run/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "exit_codes.h"
#include "lockkeeper/error.h"

namespace lockkeeper::cli {
namespace {

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(std::move(text));
  }
  for (const auto& [name, value] : added) result.emplace_back(name).append("=").append(value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Prepared {
  char** command;
  char** environment;
  const sigset_t* signalMask;
  int inherited;  // or -1
  pid_t parent;
  int report;  // Takes errno when the command cannot be started; closed by its start.
};

// Runs between fork() and exec() of a process with threads: only async-signal-safe calls.
[[noreturn]] void becomeCommand(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, prepared.signalMask, nullptr);
  if (::getppid() != prepared.parent) ::_exit(exitSignal + SIGTERM);  // The parent died before the prctl.
  if (prepared.inherited >= 0) ::fcntl(prepared.inherited, F_SETFD, 0);
  ::execvpe(prepared.command[0], prepared.command, prepared.environment);
  const int error = errno;
  (void)!::write(prepared.report, &error, sizeof error);
  ::_exit(exitCannotRun);
}

}  // namespace

ChildProcess::ChildProcess(const Setup& setup) {
  std::vector<std::string> command = setup.command;
  std::vector<std::string> environment = environmentWith(setup.environment);
  std::vector<char*> commandPointers = pointers(command);
  std::vector<char*> environmentPointers = pointers(environment);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw NotStarted(exitCannotRun, std::strerror(errno));
  const Prepared prepared{commandPointers.data(),
                          environmentPointers.data(),
                          &setup.signalMask,
                          setup.inherited.value_or(-1),
                          ::getpid(),
                          report[1]};
  // Processes of the group whose parents have ended become our children, as they do for process 1: until
  // somebody reaps them, the group counts as alive.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = ::fork();
  if (pid_ == 0) becomeCommand(prepared);
  int error = pid_ < 0 ? errno : 0;
  ::close(report[1]);
  if (pid_ > 0) {
    // Both sides do this, since either may run first.
    ::setpgid(pid_, pid_);
    if (::read(report[0], &error, sizeof error) > 0) ::waitpid(pid_, nullptr, 0);
  }
  ::close(report[0]);
  if (error != 0) {
    throw NotStarted(error == ENOENT ? exitNotFound : exitCannotRun,
                     "cannot run " + quoted(setup.command.front()) + ": " + std::strerror(error));
  }
}

bool ChildProcess::signalGroup(int number) const { return ::kill(-pid_, number) == 0 || errno != EPERM; }

bool ChildProcess::groupLives() const { return ::kill(-pid_, 0) == 0 || errno == EPERM; }

void ChildProcess::check() {
  int status = 0;
  for (pid_t which = 0; (which = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (which != pid_) continue;
    if (WIFSTOPPED(status)) {
      stoppedBy_ = WSTOPSIG(status);
    } else {
      exitCode_ = WIFSIGNALED(status) ? exitSignal + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

std::optional<int> ChildProcess::stoppedBy() { return std::exchange(stoppedBy_, std::nullopt); }

}  // namespace lockkeeper::cli
