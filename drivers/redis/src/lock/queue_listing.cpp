#include "lock/queue_listing.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lock/lock_value.h"
#include "store/companion_key.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

// So that no request is large.
constexpr std::size_t keysAtOnce = 256;

// In µs. What is longer is no time: the ticket of one that waits ahead of the others is 0.
constexpr std::int64_t longestWait = std::chrono::microseconds(std::chrono::years{10}).count();

std::vector<Waiter> waitersIn(RedisStore& store, const Request& request, std::size_t index) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) store.refuse(reply);
  if (reply.kind != ReplyKind::array || reply.items.size() % 2 != 0) store.unexpected(request);
  std::vector<Waiter> waiters;
  for (std::size_t item = 0; item < reply.items.size(); item += 2) {
    const std::string& value = reply.items[item].text;
    const std::int64_t age = reply.items[item + 1].integer;
    const ClaimText text = textIn(value).value_or(ClaimText{});
    Waiter waiter{.owner = text.owner, .waited = {}, .share = text.share};
    if (age < longestWait) waiter.waited = std::chrono::milliseconds{std::max<std::int64_t>(age, 0) / 1000};
    waiters.push_back(std::move(waiter));
  }
  return waiters;
}

}  // namespace

std::vector<std::vector<Waiter>> waitersOf(RedisStore& store, std::span<const std::string> keys,
                                           Instant deadline) {
  std::vector<std::vector<Waiter>> found;
  found.reserve(keys.size());
  const std::string most = std::to_string(WaiterBrowsable::mostListed);
  Request request;
  while (!keys.empty()) {
    const auto some = keys.first(std::min(keys.size(), keysAtOnce));
    keys = keys.subspan(some.size());
    request.clear();
    store.executeScripts(request, deadline, [&](Request& call, Script::By by) {
      for (const std::string& key : some) {
        const ComposedText order = companionKey(key, "queue");
        const ComposedText waiters = companionKey(key, "waiters");
        Script::waiters().addTo(call, by, std::array<std::string_view, 2>{order, waiters},
                                std::array<std::string_view, 1>{most});
      }
    });
    for (std::size_t index = 0; index < some.size(); ++index) {
      found.push_back(waitersIn(store, request, index));
    }
  }
  return found;
}

}  // namespace lockkeeper::redis
