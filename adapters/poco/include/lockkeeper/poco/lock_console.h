#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/poco/console/recent_activity.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/health_handler.h"

namespace lockkeeper::poco {

/// What a LockConsole shows, and to whom.
struct ConsoleOptions {
  std::string path = "/locks";               ///< Where it is mounted; "/" takes all paths of the server.
  std::string storeName{};                   ///< What the page calls the store: StoreUri::display(), say.
  std::string keyNamespace{};                ///< Shows only the keys of this namespace, and without it.
  std::string prefix{};                      ///< Shows only keys that start with it.
  std::chrono::milliseconds interval{1000};  ///< How often a page, and the store, is asked: 100 ms to 1 h.
  /// The host names of the page, without a port. Requests for another Host are refused. On a loopback
  /// address, loopback's own names are allowed as well; on another address, empty allows any name.
  std::vector<std::string> hosts{};
  /// Returns the name of the operator who sends a request, for the log; operators may take locks from their
  /// holders. Returns an empty text for all others. If it is not set, nobody may.
  UserOf operatorOf{};
  /// What this process did, beside what the store says: see RecentActivity. Null: not shown.
  std::shared_ptr<const RecentActivity> activity{};
  /// Whether these answer is shown, as in serveHealth().
  HealthParts health{};
};

/// A page for Poco's HTTP server that shows live who holds which lock, who waits for it and what was lost. It
/// needs nothing from the internet. It asks the store once for all viewers, and not at all while nobody
/// looks. It never sends lock tokens.
///
///     LockConsole console(stores.open(uri), {.path = "/locks"});
///     HTTPServer server(console.wrap(std::move(application)).release(), socket, parameters);
///
/// Whoever reaches the path may read: put your own log-in before it where that matters. Attempts to break a
/// lock go to Poco::Logger "lockkeeper.console". docs/console.md says more. Thread-safe.
class LOCKKEEPER_POCO_EXPORT LockConsole {
 public:
  /// Does not ask the store yet. Throws ConfigError if the store cannot list its locks, or cannot break them
  /// although `operatorOf` is set, and std::invalid_argument for options out of range.
  LockConsole(const std::shared_ptr<LockDriver>& store, ConsoleOptions options);
  LockConsole(const LockConsole&) = delete;
  LockConsole& operator=(const LockConsole&) = delete;
  ~LockConsole();

  /// A factory that serves the console at its path. Other requests go to `others`, or get 404 if it is null.
  /// It may outlive this object.
  std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> wrap(
      std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others = nullptr);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace lockkeeper::poco
