#include "processor_time.h"

#include <time.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "temp_folder.h"

namespace lockkeeper::bench {

namespace {

std::vector<pid_t> childrenOf(const std::string& process) {
  std::vector<pid_t> found;
  std::error_code ended;
  for (std::filesystem::directory_iterator thread("/proc/" + process + "/task", ended), end;
       !ended && thread != end; thread.increment(ended)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

void addDescendants(std::vector<pid_t>& processes) {
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const std::vector<pid_t> started = childrenOf(std::to_string(processes[i]));
    processes.insert(processes.end(), started.begin(), started.end());
  }
}

// Without those that end in the meantime.
std::map<pid_t, double> secondsOfServers(const std::string& program) {
  std::map<pid_t, double> all;
  for (const pid_t server : serversOf(program)) {
    clockid_t clock = 0;
    timespec time{};
    if (::clock_getcpuclockid(server, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
      all[server] = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return all;
}

}  // namespace

double processorTime() {
  timespec time{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0)
    throw std::runtime_error("no processor time of a process");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::vector<pid_t> startedProcesses() {
  std::vector<pid_t> all = childrenOf("self");
  addDescendants(all);
  return all;
}

std::vector<pid_t> serversOf(const std::string& program) {
  std::vector<pid_t> found;
  if (program.empty()) return found;
  for (const pid_t child : childrenOf("self")) {
    const std::string command = test::readFile("/proc/" + std::to_string(child) + "/cmdline");
    if (command.find(program) != command.npos) found.push_back(child);
  }
  addDescendants(found);
  return found;
}

ServerTime::ServerTime(std::string program)
    : program_(std::move(program)), before_(secondsOfServers(program_)) {}

double ServerTime::seconds() const {
  double sum = 0;
  for (const auto& [server, seconds] : secondsOfServers(program_)) {
    const auto before = before_.find(server);
    sum += before == before_.end() ? seconds : seconds - before->second;
  }
  return sum;
}

}  // namespace lockkeeper::bench
