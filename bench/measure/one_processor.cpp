#include "one_processor.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "processor_time.h"

namespace lockkeeper::bench {

namespace {

std::vector<pid_t> allThreads() {
  std::vector<pid_t> processes = startedProcesses(), threads;
  processes.push_back(::getpid());
  for (const pid_t process : processes) {
    std::error_code ended;
    for (std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", ended), end;
         !ended && thread != end; thread.increment(ended))
      threads.push_back(std::stoi(thread->path().filename()));
  }
  return threads;
}

}  // namespace

OneProcessor::OneProcessor() {
  if (::sched_getaffinity(0, sizeof own_, &own_) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  // Not the first one, which handles most interrupts.
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<unsigned>(last), &own_)) --last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(last), &one);
  for (const pid_t thread : allThreads()) {
    cpu_set_t mask;
    if (::sched_getaffinity(thread, sizeof mask, &mask) != 0) continue;  // It has ended.
    before_[thread] = mask;
    if (::sched_setaffinity(thread, sizeof one, &one) != 0 && errno != ESRCH)
      throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
  }
}

OneProcessor::~OneProcessor() {
  // Those that were started in the meantime stay on it otherwise.
  for (const pid_t thread : allThreads()) {
    const auto before = before_.find(thread);
    ::sched_setaffinity(thread, sizeof own_, before == before_.end() ? &own_ : &before->second);
  }
}

}  // namespace lockkeeper::bench
