#include "lock/manager_options.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "lock/lease.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper::detail {

namespace {

constexpr std::size_t longestOwner = 64;

bool fitsOwner(char c) { return c > ' ' && c < 0x7f && c != '@'; }

std::string hostAndPid() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') return "pid:" + std::to_string(getpid());
  std::string name(host);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !fitsOwner(c); }, '_');
  const std::string pid = ":" + std::to_string(getpid());
  return name.substr(0, longestOwner - pid.size()) + pid;
}

void checkPositive(const char* name, std::chrono::milliseconds value) {
  checkDuration<ConfigError>(name, value, std::chrono::milliseconds{1}, std::chrono::hours{1});
}

}  // namespace

ManagerOptions completed(ManagerOptions options) {
  checkNamespace(options.keyNamespace);
  if (options.owner.empty()) options.owner = hostAndPid();
  if (options.owner.size() > longestOwner ||
      !std::all_of(options.owner.begin(), options.owner.end(), fitsOwner)) {
    throw ConfigError("the owner " + quoted(options.owner) +
                      " is not 1 to 64 printable characters without '@'");
  }
  checkPositive("operationTimeout", options.operationTimeout);
  checkPositive("backoffInitial", options.backoffInitial);
  checkPositive("backoffCap", options.backoffCap);
  checkOptions(options.lock);
  const Environment& environment = options.environment;
  if (!environment.clock || !environment.random || !environment.listener) {
    throw std::invalid_argument("the environment of a LockManager needs a clock, a random and a listener");
  }
  return options;
}

}  // namespace lockkeeper::detail
