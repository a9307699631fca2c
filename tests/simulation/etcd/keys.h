#pragma once

#include <Poco/JSON/Object.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockkeeper::simulation {

/// An error of etcd: gRPC's code and the text.
class EtcdRefusal : public std::runtime_error {
 public:
  EtcdRefusal(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// The keys and leases of an etcd cluster, and what its JSON gateway says of them. Times are in nanoseconds.
class EtcdKeys {
 public:
  struct Key {
    std::string value;
    std::int64_t created = 0;
    std::int64_t modified = 0;
    std::int64_t version = 0;
    std::int64_t lease = 0;
  };
  struct Removal {
    std::vector<std::string> keys;
    std::int64_t revision;
  };

  /// `now` is the leader's clock. `onRemoval` hears of each revision that removes keys.
  EtcdKeys(std::function<std::int64_t()> now, std::function<void(const Removal&)> onRemoval)
      : now_(std::move(now)), onRemoval_(std::move(onRemoval)) {}

  /// The body of the reply to a call. Throws EtcdRefusal.
  std::string call(const std::string& path, const Poco::JSON::Object& request);

  bool hasLeases() const noexcept { return !leases_.empty(); }
  /// Removes those that have ended, with their keys.
  void endLeases();
  /// As a new leader does: all leases start anew.
  void startLeasesAnew();

  const std::map<std::string, Key>& all() const noexcept { return keys_; }
  /// What stands in front of each reply.
  std::string header() const;

 private:
  struct Lease {
    std::int64_t ttl = 0;  // in s
    std::int64_t end = 0;
    std::set<std::string> keys{};
  };
  using Selected = std::vector<std::map<std::string, Key>::const_iterator>;

  std::string transaction(const Poco::JSON::Object& request);
  bool holds(const Poco::JSON::Object& compare) const;
  Selected select(const Poco::JSON::Object& range) const;
  std::string range(const Poco::JSON::Object& request) const;
  void put(const Poco::JSON::Object& request, std::int64_t revision);
  std::vector<std::string> remove(const Poco::JSON::Object& request);
  void detach(const std::string& key, std::int64_t lease);
  std::string grant(const Poco::JSON::Object& request);
  std::string keepAlive(std::int64_t id);
  std::string timeToLive(std::int64_t id) const;
  std::string revoke(std::int64_t id);

  const std::function<std::int64_t()> now_;
  const std::function<void(const Removal&)> onRemoval_;
  std::map<std::string, Key> keys_;
  std::map<std::int64_t, Lease> leases_;
  std::int64_t lastLease_ = 7'000'000'000;
  std::int64_t revision_ = 1;
};

/// Of bytes, as JSON has them.
std::string base64Of(const std::string& bytes);

}  // namespace lockkeeper::simulation
