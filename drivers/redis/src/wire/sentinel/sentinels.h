#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/mux/multiplexer.h"

namespace lockkeeper::redis {

/// The sentinels of one master, with a connection to each. What more than half of all of them say about the
/// master is true; so one that is cut off from the others misleads nobody. Thread-safe.
class Sentinels {
 public:
  struct Master {
    std::string host{};
    std::uint16_t port = 0;

    std::string name() const { return host + ":" + std::to_string(port); }
  };

  /// `options.sentinel` must be there. Connects nowhere yet. Throws ConfigError for certificate or key files
  /// that cannot be used.
  Sentinels(const RedisOptions& options, const Environment& environment);

  /// Where the master is. Blocks until enough sentinels agree, until `deadline` at most. Throws
  /// StoreUnavailable when too few do, ConfigError when a majority does not know its name, or is set up
  /// wrongly, as its answers to our first attempt say. One that is set up wrongly beside such a majority is
  /// told to the listener, once.
  Master find(Instant deadline);

  /// For dialers: find(), within half of connectTimeout, which leaves the other half for the master.
  static Resolver resolver(const std::shared_ptr<Sentinels>& sentinels);

 private:
  struct Votes;

  std::string fewAgree(const Votes& votes) const;
  void tellOfMisconfigured(const Request& request);

  const std::string master_;
  const std::size_t majority_;
  const Environment environment_;
  const std::chrono::milliseconds lookupTimeout_;
  Multiplexer server_;
  std::mutex mutex_;
  std::set<std::size_t> told_;  // of which sentinels the listener knows
};

}  // namespace lockkeeper::redis
