#include "http/lock/lock_route.h"

#include <Poco/StringTokenizer.h>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {
namespace {

using Poco::StringTokenizer;

constexpr auto locksRoot = "lockkeeper.http.locks";
constexpr std::size_t mostSources = 4;
constexpr std::size_t mostWaiting = 10'000;
// Not a colon: with a value it could make the mark that no key may contain.
constexpr char partMark = '/';

std::vector<KeySource> sourcesOf(const std::string& what, const std::string& text,
                                 const RoutePattern& pattern, const UserOf& user) {
  const StringTokenizer parts(text, ",", StringTokenizer::TOK_TRIM);
  if (parts.count() > mostSources) {
    throw std::invalid_argument(what + " has " + std::to_string(parts.count()) +
                                " parts: 1 to 4 are allowed");
  }
  std::vector<KeySource> sources;
  for (const auto& part : parts) {
    sources.push_back(KeySource::parse(what, part, pattern, user));
    if (sources.back().needsBody()) {
      throw std::invalid_argument(what + " is " + quoted(text) +
                                  ": the body is not read before the lock is held");
    }
  }
  if (sources.empty())
    throw std::invalid_argument(what + " is missing: it says what the key is made of, as path id");
  return sources;
}

}  // namespace

void checkFilter(const RequestLockOptions& options) {
  if (options.maxWaiting) checkRange("lockkeeper.http.maxWaiting", *options.maxWaiting, 0, mostWaiting);
}

RequestLockOptions completed(RequestLockOptions options, const LockOptions& defaults) {
  for (LockedRoute& route : options.routes) {
    LockOptions& lock = route.lock;
    if (!lock.ttl) lock.ttl = defaults.ttl;
    if (!lock.waitFor) lock.waitFor = defaults.waitFor.value_or(std::chrono::milliseconds{0});
    if (!lock.renew) lock.renew = Renew::automatic;  // a handler does not renew
    if (!lock.maxHold) lock.maxHold = defaults.maxHold;
    if (!lock.safetyMargin) lock.safetyMargin = defaults.safetyMargin;
    lock.stop = {};
  }
  return options;
}

LockRoute LockRoute::of(const LockedRoute& given, const RequestLockOptions& options) {
  checkName(std::string("a name in ") + locksRoot, given.name);
  const std::string here = locksRoot + std::string(".") + given.name;
  if (!given.scope.empty()) checkName(here + ".scope", given.scope);
  checkLock(here, given.lock);
  RoutePattern pattern = RoutePattern::parse(here + ".match", given.match);
  std::vector<KeySource> sources = sourcesOf(here + ".by", given.by, pattern, options.clients.user);
  return {.name = given.name,
          .pattern = std::move(pattern),
          .sources = std::move(sources),
          .scope = given.scope.empty() ? given.name : given.scope,
          .lock = given.lock};
}

std::string LockRoute::keyFor(const RequestFacts& facts) const {
  std::string key = scope + partMark;
  if (sources.size() == 1) return key + sources.front().keyFor(facts);
  for (const auto& source : sources) {
    if (&source != &sources.front()) key += partMark;
    key += source.partFor(facts, partMark);
  }
  return key;
}

RequestLockOptions RequestLockOptions::fromConfiguration(
    const Poco::Util::AbstractConfiguration& configuration) {
  return fromSettings(readSettings(configuration));
}

RequestLockOptions RequestLockOptions::fromSettings(const Settings& settings) {
  RequestLockOptions options = settings.http.locks;
  options.clients = settings.http.clients;
  checkConfigured<LockRules>(completed(options, settings.manager.lock));
  return options;
}

}  // namespace lockkeeper::poco
