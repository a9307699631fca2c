#include "lockkeeper/libpq/log_in.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "host_log_in.h"
#include "lockkeeper/error.h"

namespace lockkeeper::libpq {
namespace {

// `socket` is a folder: the name of the server's file in it takes the rest of the kernel's 107 bytes.
constexpr ServerKind postgresServer{.defaultPort = 5432, .longestSocket = 80, .longestDatabase = 63};

// When one server is known to take the writes, the others have so long to say that they do, too.
constexpr std::chrono::milliseconds longestWaitForOthers{250};

// Why none of them is fit: their own words, and whether the administrator has to mend all of them.
[[noreturn]] void throwNone(const std::vector<std::exception_ptr>& failures, const std::string& display) {
  if (failures.size() == 1) std::rethrow_exception(failures.front());
  bool isConfig = true;
  std::string text = display + ": none of its hosts takes writes";
  for (const std::exception_ptr& each : failures) {
    try {
      std::rethrow_exception(each);
    } catch (const Error& error) {
      isConfig = isConfig && error.code() == ErrorCode::config;
      text += std::string("; ") + error.what();
    }
  }
  if (isConfig) throw ConfigError(text);
  throw StoreUnavailable(text);
}

void awaitAny(const std::vector<std::unique_ptr<HostLogIn>>& underWay, const Clock& clock, Instant until) {
  std::vector<pollfd> sockets;
  for (const auto& each : underWay) {
    sockets.push_back(each->waitsFor());
    until = std::min(until, each->wakesAt());
  }
  pollUntil(sockets, clock, until);
}

}  // namespace

ServerLogin readLogin(const StoreUri& uri) {
  ServerLogin login = ServerLogin::read(uri, postgresServer);
  if (!login.user.empty()) return login;
  throw ConfigError("the store's URI names no user: it must be one, as " + uri.scheme() +
                    "://user:password@host:port/database");
}

LoggedIn logIn(const ServerLogin& login, std::optional<std::size_t> only, const std::string& pins,
               const Clock& clock, Instant until) {
  std::vector<std::unique_ptr<HostLogIn>> underWay;
  for (std::size_t host = 0; host < login.hosts.size(); ++host) {
    if (!only || host == *only)
      underWay.push_back(std::make_unique<HostLogIn>(login, host, pins, clock, until));
  }
  std::unique_ptr<HostLogIn> best;
  std::vector<std::exception_ptr> failures;
  while (true) {
    for (auto& each : underWay) {
      each->proceed();
      if (!each->ended()) continue;
      if (each->failure()) {
        failures.push_back(each->failure());
      } else if (!best || each->facts().timeline > best->facts().timeline) {
        best = std::move(each);
        until = std::min(until, clock.now() + longestWaitForOthers);
      } else if (each->facts().timeline == best->facts().timeline) {
        throw StoreUnavailable(login.hosts[best->host()].display + " and " +
                               login.hosts[each->host()].display +
                               " both take writes: all hosts but one must be standbys");
      }
      each.reset();
    }
    std::erase(underWay, nullptr);
    if (underWay.empty() || (best && clock.now() >= until)) break;
    awaitAny(underWay, clock, until);
  }
  if (!best) throwNone(failures, login.display);
  return {.handle = best->takeHandle(), .host = best->host(), .facts = best->facts()};
}

}  // namespace lockkeeper::libpq
