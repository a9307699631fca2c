#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "http/idempotency/idempotency_route.h"
#include "http/idempotency/stored_answer.h"

namespace lockkeeper::poco {

/// The answers of an Idempotency in their store, within IdempotencyOptions::maxStored and maxStoredPerClient.
/// Thread-safe.
class AnswerStore {
 public:
  explicit AnswerStore(std::shared_ptr<ValueStore> values) : values_(std::move(values)) {}

  /// False for a client that has used up its room for the facts, too: nothing more of it is carried out,
  /// since it could not be remembered.
  bool hasRoom(const IdempotencyOptions& options, const IdempotencyRoute& route, const std::string& client);

  /// Throws Error.
  std::optional<StoredAnswer> find(const IdempotencyOptions& options, const std::string& key);

  struct Bytes {
    std::size_t ofAll = 0;
    std::size_t ofClient = 0;
  };
  /// What an answer takes of the bounds, and until when.
  struct Counted {
    Instant end{};
    Bytes bytes{};
  };

  /// Keeps the answer if it is final; only the fact, when it, or all of the client, or all together are too
  /// long. `counted` is written before the store is asked, and not if nothing is kept. Throws Error.
  void keep(const IdempotencyOptions& options, const IdempotencyRoute& route, const std::string& client,
            const std::string& key, const StoredAnswer& answer, Counted& counted);

  /// Removes what keep() may have kept, and gives back what it has counted. Throws Error.
  void forget(const IdempotencyOptions& options, const std::string& client, const std::string& key,
              const Counted& counted);

 private:
  bool fits(const IdempotencyOptions& options, const IdempotencyRoute& route, const std::string& client,
            std::size_t bytes) const;
  std::size_t storedOf(const std::string& client) const;
  void count(const std::string& client, const Counted& counted);
  void giveBack(const std::string& client, Bytes bytes);
  void dropEnded(Instant now);

  const std::shared_ptr<ValueStore> values_;
  std::mutex mutex_;
  std::size_t stored_ = 0;                                    // of whole answers
  std::map<std::string, std::size_t> storedOfClients_;        // facts count, too; those who have some
  std::map<std::pair<Instant, std::string>, Bytes> endings_;  // what ends then, by client
};

}  // namespace lockkeeper::poco
