#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace lockkeeper::bench {

/// Processor seconds of this process.
double processorTime();

/// All processes that this one has started, and those that they have.
std::vector<pid_t> startedProcesses();

/// The children of this process that have `program` in their command lines, such as "redis-server", and all
/// processes that these have started; none for "".
std::vector<pid_t> serversOf(const std::string& program);

/// Counts what servers use from when it is made on.
class ServerTime {
 public:
  explicit ServerTime(std::string program);

  /// Processor seconds of the servers that run now. One that has ended in the meantime does not count.
  double seconds() const;

 private:
  const std::string program_;
  const std::map<pid_t, double> before_;
};

}  // namespace lockkeeper::bench
