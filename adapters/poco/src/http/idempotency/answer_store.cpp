#include "http/idempotency/answer_store.h"

#include <algorithm>
#include <chrono>

namespace lockkeeper::poco {

namespace {

using Poco::Net::HTTPResponse;

/// What a fact takes in a store, with its key.
constexpr std::size_t factBytes = 300;
constexpr std::size_t leastRoomForFacts = std::size_t{64} << 10;

bool isFinalStatus(int status) {
  switch (status) {
    case HTTPResponse::HTTP_UNAUTHORIZED:
    case HTTPResponse::HTTP_PROXY_AUTHENTICATION_REQUIRED:
    case HTTPResponse::HTTP_REQUEST_TIMEOUT:
    case HTTPResponse::HTTP_CONFLICT:
    case HTTPResponse::HTTP_MISDIRECTED_REQUEST:
    case HTTPResponse::HTTP_LOCKED:
    case 425:  // Too Early
    case HTTPResponse::HTTP_TOO_MANY_REQUESTS:
      return false;
    default:
      return status < HTTPResponse::HTTP_INTERNAL_SERVER_ERROR;
  }
}

Instant nowOf(const IdempotencyOptions& options) {
  return options.clock ? options.clock->now() : systemClock()->now();
}

Instant deadlineOf(const IdempotencyOptions& options) {
  return saturatingAdd(nowOf(options), options.operationTimeout);
}

/// When something that is kept from now on counts no more: a little later than it ends, so that what ends at
/// nearly the same time is counted together.
Instant endOf(const IdempotencyRoute& route, Instant now) {
  const auto step = std::max(std::chrono::nanoseconds(route.keepFor) / 64, std::chrono::nanoseconds{1});
  const Instant end = saturatingAdd(now, route.keepFor + step);
  return end - end.time_since_epoch() % step;
}

std::string valueKey(const IdempotencyOptions& options, const std::string& key) {
  return options.keyNamespace.empty() ? key : options.keyNamespace + ":" + key;
}

/// Calls once more if the first call fails: its answer may be all that was lost.
template <class Call>
void insist(Call call) {
  try {
    call();
  } catch (const Error&) {
    call();
  }
}

}  // namespace

std::optional<StoredAnswer> AnswerStore::find(const IdempotencyOptions& options, const std::string& key) {
  const auto bytes = values_->get(valueKey(options, key), deadlineOf(options));
  return bytes ? std::optional(StoredAnswer::decode(*bytes)) : std::nullopt;
}

void AnswerStore::keep(const IdempotencyOptions& options, const IdempotencyRoute& route,
                       const std::string& client, const std::string& key, const StoredAnswer& answer,
                       Counted& counted) {
  if (options.isFinal ? !options.isFinal(answer.status) : !isFinalStatus(answer.status)) return;
  std::string bytes = answer.encode();
  {
    const Instant now = nowOf(options);
    const std::lock_guard guard(mutex_);
    dropEnded(now);
    // Both count also if the store should not take them.
    if (answer.whole && fits(options, route, client, bytes.size())) {
      counted = {endOf(route, now), {.ofAll = bytes.size(), .ofClient = bytes.size()}};
    } else {
      bytes =
          StoredAnswer{.fingerprint = answer.fingerprint, .status = answer.status, .whole = false}.encode();
      if (!route.client.isEverybody()) counted = {endOf(route, now), {.ofClient = factBytes}};
    }
    count(client, counted);
  }
  // What is not kept runs again when it is repeated. The first one that is kept stays.
  insist([&] { values_->add(valueKey(options, key), bytes, route.keepFor, deadlineOf(options)); });
}

void AnswerStore::forget(const IdempotencyOptions& options, const std::string& client, const std::string& key,
                         const Counted& counted) {
  insist([&] { values_->erase(valueKey(options, key), deadlineOf(options)); });
  const std::lock_guard guard(mutex_);
  const auto ending = endings_.find({counted.end, client});
  if (ending == endings_.end()) return;  // It has ended meanwhile, or nothing was kept.
  ending->second.ofAll -= counted.bytes.ofAll;
  ending->second.ofClient -= counted.bytes.ofClient;
  giveBack(client, counted.bytes);
}

bool AnswerStore::hasRoom(const IdempotencyOptions& options, const IdempotencyRoute& route,
                          const std::string& client) {
  if (route.client.isEverybody()) return true;
  const std::lock_guard guard(mutex_);
  dropEnded(nowOf(options));
  const std::size_t forFacts = std::max(options.maxStoredPerClient, leastRoomForFacts);
  return storedOf(client) < options.maxStoredPerClient + forFacts;
}

/// Whether an answer of so many bytes may be stored whole.
bool AnswerStore::fits(const IdempotencyOptions& options, const IdempotencyRoute& route,
                       const std::string& client, std::size_t bytes) const {
  const auto fitInto = [bytes](std::size_t most, std::size_t stored) {
    return stored <= most && bytes <= most - stored;
  };
  return bytes <= options.maxAnswer && fitInto(options.maxStored, stored_) &&
         (route.client.isEverybody() || fitInto(options.maxStoredPerClient, storedOf(client)));
}

std::size_t AnswerStore::storedOf(const std::string& client) const {
  const auto known = storedOfClients_.find(client);
  return known == storedOfClients_.end() ? 0 : known->second;
}

void AnswerStore::count(const std::string& client, const Counted& counted) {
  const auto& [end, bytes] = counted;
  if (bytes.ofClient == 0) return;
  std::size_t& storedOfClient = storedOfClients_[client];
  Bytes& ending = endings_[{end, client}];
  ending.ofAll += bytes.ofAll;
  ending.ofClient += bytes.ofClient;
  storedOfClient += bytes.ofClient;
  stored_ += bytes.ofAll;
}

void AnswerStore::giveBack(const std::string& client, Bytes bytes) {
  const auto its = storedOfClients_.find(client);
  if (its != storedOfClients_.end() && (its->second -= bytes.ofClient) == 0) storedOfClients_.erase(its);
  stored_ -= bytes.ofAll;
}

void AnswerStore::dropEnded(Instant now) {
  while (!endings_.empty() && endings_.begin()->first.first <= now) {
    const auto ended = endings_.begin();
    giveBack(ended->first.second, ended->second);
    endings_.erase(ended);
  }
}

}  // namespace lockkeeper::poco
