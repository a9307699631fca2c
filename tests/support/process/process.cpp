#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// With `env` before it when variables are to be added: it becomes the command, under the same process id.
std::vector<std::string> withEnvironment(const std::vector<std::string>& command,
                                         const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  if (!added.empty()) result.push_back("env");
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  result.insert(result.end(), command.begin(), command.end());
  return result;
}

bool redirect(const char* path, int flags, int target) {
  const int file = ::open(path, flags, 0600);
  return file >= 0 && ::dup2(file, target) == target;
}

struct Prepared {
  char** arguments;
  const char* input;
  const char* output;
  const char* errors;
  pid_t parent;
  int report;  // Where the child writes errno when it cannot become the program.
};

// Runs between fork() and exec() of a process with threads: only async-signal-safe calls.
[[noreturn]] void becomeProgram(const Prepared& prepared) {
  constexpr int written = O_WRONLY | O_CREAT | O_APPEND;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Whoever runs the tests may ignore these, as nohup does, or a shell for what it runs in the background.
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT}) ::signal(number, SIG_DFL);
  if (::getppid() == prepared.parent && redirect(prepared.input, O_RDONLY, STDIN_FILENO) &&
      redirect(prepared.output, written, STDOUT_FILENO) &&
      redirect(prepared.errors, written, STDERR_FILENO)) {
    ::dup2(prepared.report, STDERR_FILENO + 1);
    ::fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
    ::close_range(STDERR_FILENO + 2, ~0U, 0);
    ::execvp(prepared.arguments[0], prepared.arguments);
    const int error = errno;
    (void)!::write(STDERR_FILENO + 1, &error, sizeof error);
    ::_exit(127);
  }
  const int error = errno;
  (void)!::write(prepared.report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const ProcessOptions& options) {
  std::vector<std::string> arguments = withEnvironment(command, options.environment);
  std::vector<char*> argumentPointers = pointers(arguments);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  const Prepared prepared{argumentPointers.data(),
                          options.standardInput.c_str(),
                          options.standardOutput.c_str(),
                          options.standardError.c_str(),
                          ::getpid(),
                          report[1]};
  pid_ = ::fork();
  if (pid_ == 0) becomeProgram(prepared);
  const int forkError = errno;
  ::close(report[1]);
  int startError = 0;
  const bool failed = pid_ < 0 || ::read(report[0], &startError, sizeof startError) > 0;
  ::close(report[0]);
  if (pid_ < 0) throw std::system_error(forkError, std::generic_category(), "fork");
  if (failed) {
    reap(0);
    throw std::system_error(startError, std::generic_category(), "cannot start " + command.at(0));
  }
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exitCode_(other.exitCode_) {}

Process::~Process() {
  if (exitCode_ || pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap(0);
}

void Process::signal(int number) const {
  if (!exitCode_ && pid_ > 0) ::kill(pid_, number);
}

void Process::pause() const {
  signal(SIGSTOP);
  const std::string status = "/proc/" + std::to_string(pid_) + "/stat";
  // The state stands behind the program's name, which ends with the last ')'.
  const bool stopped = waitUntil([&] {
    const std::string text = readFile(status);
    const auto name = text.rfind(')');
    return name != std::string::npos && text.size() > name + 2 && text[name + 2] == 'T';
  });
  if (!stopped) throw std::runtime_error("process " + std::to_string(pid_) + " does not stop on SIGSTOP");
}

bool Process::running() {
  reap(WNOHANG);
  return !exitCode_;
}

std::optional<int> Process::waitFor(std::chrono::milliseconds bound) {
  waitUntil([&] { return !running(); }, bound);
  return exitCode_;
}

void Process::reap(int flags) {
  if (exitCode_ || pid_ < 0) return;
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid_, &status, flags);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == pid_) exitCode_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Finished runToEnd(const std::vector<std::string>& command, ProcessOptions options,
                  std::chrono::milliseconds bound) {
  TempFolder folder;
  options.standardOutput = folder / "output";
  options.standardError = folder / "errors";
  Process process(command, options);
  const std::optional<int> exitCode = process.waitFor(bound);
  std::string output = readFile(options.standardOutput);
  std::string errors = readFile(options.standardError);
  if (!exitCode)
    throw std::runtime_error(command.at(0) + " has not ended in time; it wrote: " + output + errors);
  return {*exitCode, std::move(output), std::move(errors)};
}

}  // namespace lockkeeper::test
