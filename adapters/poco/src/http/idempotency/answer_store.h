#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "http/idempotency/idempotency_route.h"
#include "http/idempotency/stored_answer.h"

namespace lockkeeper::poco {

/// The answers of an Idempotency in their store, within IdempotencyOptions::maxStored. Thread-safe.
class AnswerStore {
 public:
  explicit AnswerStore(std::shared_ptr<ValueStore> values) : values_(std::move(values)) {}

  /// Throws Error.
  std::optional<StoredAnswer> find(const IdempotencyOptions& options, const std::string& key);

  /// Keeps the answer if it is final; only the fact, when it or all together are too long. Throws Error.
  void keep(const IdempotencyOptions& options, const IdempotencyRoute& route, const std::string& key,
            const StoredAnswer& answer);

  /// Removes what keep() may have kept. Throws Error.
  void forget(const IdempotencyOptions& options, const std::string& key);

 private:
  using Ending = std::pair<Instant, std::size_t>;  // when so many bytes end

  bool claim(const IdempotencyOptions& options, const IdempotencyRoute& route, std::size_t bytes);

  const std::shared_ptr<ValueStore> values_;
  std::mutex mutex_;
  std::size_t stored_ = 0;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;  // what stored_ is made of
};

}  // namespace lockkeeper::poco
