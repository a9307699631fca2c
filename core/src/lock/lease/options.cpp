#include "lock/lease/options.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper::detail {

using std::chrono::hours;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t longestOwner = 64;
constexpr milliseconds noBound = std::chrono::years{100};

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

void checkPositive(const char* name, milliseconds value) {
  checkDuration(name, value, milliseconds{1}, hours{1});
}

}  // namespace

LockTerms termsOf(const LockOptions& call, const LockOptions& defaults, milliseconds unnamedWait) {
  const auto either = [](const auto& named, const auto& otherwise) { return named ? named : otherwise; };
  const auto maxHold = either(call.maxHold, defaults.maxHold);
  const auto margin = either(call.safetyMargin, defaults.safetyMargin);
  LockTerms terms;
  terms.ttl = either(call.ttl, defaults.ttl).value_or(LockOptions::defaultTtl);
  terms.waitFor = either(call.waitFor, defaults.waitFor).value_or(unnamedWait);
  terms.renew = either(call.renew, defaults.renew).value_or(Renew::automatic);
  terms.stop = call.stop.stop_possible() ? call.stop : defaults.stop;

  checkDuration("ttl", terms.ttl, shortestTtl, longestTtl);
  if (terms.waitFor != forever) checkDuration("waitFor", terms.waitFor, milliseconds{0}, hours{24});
  if (maxHold) checkDuration("maxHold", *maxHold, milliseconds{1}, forever);
  if (margin) {
    const auto most = std::chrono::floor<milliseconds>(terms.ttl / 2 - driftOf(terms.ttl));
    checkDuration("safetyMargin", *margin, milliseconds{0}, most);
  }
  if (maxHold && *maxHold < noBound) terms.maxHold = maxHold;
  terms.margin = margin;
  if (call.share) checkShare(*call.share);
  terms.share = call.share;
  return terms;
}

ManagerOptions completed(ManagerOptions options) {
  checkNamespace(options.keyNamespace);
  if (options.owner.empty()) options.owner = hostAndPid();
  if (options.owner.size() > longestOwner || options.owner.ends_with('~') ||
      !std::all_of(options.owner.begin(), options.owner.end(), fitsOwner)) {
    throw std::invalid_argument("the owner " + quoted(options.owner) +
                                " is not 1 to 64 printable characters without '@', the last one not '~'");
  }
  checkPositive("operationTimeout", options.operationTimeout);
  if (options.longestOutage != forever)
    checkDuration("longestOutage", options.longestOutage, milliseconds{1}, hours{24});
  checkPositive("backoffInitial", options.backoffInitial);
  checkPositive("backoffCap", options.backoffCap);
  if (options.lock.share)
    throw std::invalid_argument("a share belongs to a call, not to a manager's options");
  const LockTerms terms = termsOf(options.lock, {}, milliseconds{0});
  options.lock.ttl = terms.ttl;
  options.lock.renew = terms.renew;
  if (!options.environment.clock || !options.environment.random) {
    throw std::invalid_argument("the environment of a LockManager needs a clock and a random");
  }
  return options;
}

}  // namespace lockkeeper::detail

namespace lockkeeper {

void checkOptions(const LockOptions& options, const LockOptions& defaults) {
  (void)detail::termsOf(options, defaults, forever);
}

void checkOptions(const ManagerOptions& options) { (void)detail::completed(options); }

}  // namespace lockkeeper
