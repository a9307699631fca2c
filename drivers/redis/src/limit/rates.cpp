#include "limit/rates.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lockkeeper/base/key.h"
#include "lockkeeper/limit/rate_rules.h"
#include "store/companion_key.h"
#include "wire/protocol/redirect.h"
#include "wire/protocol/script.h"
#include "wire/protocol/script_words.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t wordsPerCharge = 7;
constexpr std::size_t numbersPerCharge = 4;
constexpr std::chrono::minutes pauseOfGrouping{1};
constexpr std::string_view needs =
    "+@connection +info +time +get +set +del +pexpireat +llen +lindex +ltrim +rpush +eval +evalsha, on the "
    "keys "
    "of the limits";

// The server does not let keys that differ be in one call.
bool mustBeApart(const Reply& reply) { return isError(reply, "CROSSSLOT") || isError(reply, "NOPERM"); }

std::string_view letterOf(RateKind kind) {
  if (isBucket(kind)) return "b";
  return kind == RateKind::slidingWindow ? "l" : "w";
}

void addCharge(ScriptWords& words, const RateCharge& charge) {
  const RateLaw& law = *charge.law;
  words.add(letterOf(law.kind));
  words.add(charge.times);
  if (!isBucket(law.kind)) {
    for (const std::int64_t number : {charge.cost, law.limit, law.period, std::int64_t{0}, std::int64_t{0}}) {
      words.add(number);
    }
    return;
  }
  for (const RateTime time : {law.lengthOf(charge.cost), roomOf(charge)}) {
    words.add(time.micros);
    words.add(time.parts);
  }
  words.add(law.parts);
}

ScriptWords wordsOf(const RateRefund& refund) {
  const RateLaw& law = *refund.law;
  ScriptWords words(wordsPerCharge);
  words.add(letterOf(law.kind));
  if (!isBucket(law.kind)) {
    words.add(refund.cost);
    words.add(law.period);
    return words;
  }
  const RateTime cost = law.lengthOf(refund.cost);
  words.add(cost.micros);
  words.add(cost.parts);
  words.add(law.parts);
  if (refund.slot) {
    words.add(refund.slot->micros);
    words.add(refund.slot->parts);
  }
  return words;
}

}  // namespace

// The reserved mark comes first, so that no lock has this key and a hash tag in the caller's key still
// counts.
std::string limitKey(std::string_view key, RateKind kind) {
  std::string stored;
  stored.reserve(reservedMark.size() + 2 + key.size());
  return stored.append(reservedMark).append(letterOf(kind)).append(":").append(key);
}

/// Charges that one script decides.
struct Rates::Call {
  Call(std::string_view mode, std::size_t charges) : words(1 + wordsPerCharge * charges) {
    stored.reserve(charges);
    words.add(mode);
  }

  void add(const RateCharge& charge) {
    stored.push_back(limitKey(charge.key, charge.law->kind));
    addCharge(words, charge);
  }

  void addTo(Request& request, Script::By by) const {
    const std::vector<std::string_view> keys(stored.begin(), stored.end());
    Script::rateTake().addTo(request, by, keys, words.words());
  }

  std::vector<std::string> stored{};
  ScriptWords words;
};

Rates::Rates(RedisStore& store)
    : store_(store), groups_(store.clock(), [this](std::span<GroupedCharge> group, Instant deadline) {
        const bool isOfSlots = group.size() > 1 && store_.options().cluster != ClusterUse::none;
        isOfSlots ? decideBySlot(group, deadline) : decideEach(group, deadline);
      }) {}

void Rates::take(std::span<RateCharge> charges, Instant deadline) {
  if (charges.size() > 1) return decideTogether(charges, "take", deadline);
  if (store_.clock().now() < apartUntil_.load()) return decideTogether(charges, "each", deadline);
  groups_.decide(charges.front(), deadline);
}

void Rates::peek(std::span<RateCharge> charges, Instant deadline) {
  decideTogether(charges, "peek", deadline);
}

void Rates::decideTogether(std::span<RateCharge> charges, std::string_view mode, Instant deadline) {
  Call call(mode, charges.size());
  for (const RateCharge& each : charges) call.add(each);
  Request request;
  ask(request, call, deadline);
  check(request, 0, charges.size());
  for (std::size_t index = 0; index < charges.size(); ++index) {
    conclude(charges[index], request.reply(0), index);
  }
}

void Rates::decideEach(std::span<GroupedCharge> group, Instant deadline) {
  Call call("each", group.size());
  std::vector<GroupedCharge*> pointers;
  for (GroupedCharge& each : group) {
    call.add(*each.charge);
    pointers.push_back(&each);
  }
  Request request;
  ask(request, call, deadline);
  const Reply& reply = request.reply(0);
  if (group.size() > 1 && mustBeApart(reply)) return decideApart(pointers, deadline);
  concludeEach(pointers, request, 0);
}

// Some may not be in one call with others, or not be used at all. For those that come, group commit would
// only be a detour.
void Rates::decideApart(std::span<GroupedCharge* const> group, Instant deadline) {
  apartUntil_ = saturatingAdd(store_.clock().now(), pauseOfGrouping);
  Parts parts;
  for (GroupedCharge* each : group) parts.push_back({each});
  decideAtOnce(parts, deadline);
}

// A cluster's node takes no keys of two slots in one call: there is one call for each slot, and all are sent
// together.
void Rates::decideBySlot(std::span<GroupedCharge> group, Instant deadline) {
  std::map<std::uint16_t, std::vector<GroupedCharge*>> slots;
  for (GroupedCharge& each : group) {
    slots[hashSlot(limitKey(each.charge->key, each.charge->law->kind))].push_back(&each);
  }
  Parts parts;
  for (auto& [slot, charges] : slots) parts.push_back(std::move(charges));
  decideAtOnce(parts, deadline);
}

// One call for each part, in one round trip.
void Rates::decideAtOnce(const Parts& parts, Instant deadline) {
  std::vector<Call> calls;
  calls.reserve(parts.size());
  for (const auto& charges : parts) {
    Call& call = calls.emplace_back("each", charges.size());
    for (const GroupedCharge* each : charges) call.add(*each->charge);
  }
  Request request;
  for (const Call& each : calls) each.addTo(request, Script::By::digest);
  store_.execute(request, deadline);
  for (std::size_t call = 0; call < parts.size(); ++call) {
    const std::vector<GroupedCharge*>& charges = parts[call];
    if (charges.size() > 1 && isOnItsWay(request.reply(call))) {
      // Some of them are at one node, some at the other: each is served alone.
      for (GroupedCharge* each : charges) decideAlone(*each, deadline);
      continue;
    }
    try {
      if (charges.size() > 1 && mustBeApart(request.reply(call))) {
        decideApart(charges, deadline);
        continue;
      }
      if (isError(request.reply(call), "NOSCRIPT")) {
        // Alone, since others may have been charged already.
        Request again;
        ask(again, calls[call], deadline);
        concludeEach(charges, again, 0);
        continue;
      }
      concludeEach(charges, request, call);
    } catch (const Error&) {
      for (GroupedCharge* each : charges) each->failure = std::current_exception();
    }
  }
}

// An error of one key's is nobody else's matter.
void Rates::concludeEach(std::span<GroupedCharge* const> group, const Request& request, std::size_t call) {
  check(request, call, group.size());
  for (std::size_t index = 0; index < group.size(); ++index) {
    try {
      conclude(*group[index]->charge, request.reply(call), index);
    } catch (const Error&) {
      group[index]->failure = std::current_exception();
    }
  }
}

void Rates::decideAlone(GroupedCharge& charge, Instant deadline) {
  try {
    decideEach({&charge, 1}, deadline);
  } catch (const Error&) {
    charge.failure = std::current_exception();
  }
}

void Rates::ask(Request& request, const Call& call, Instant deadline) {
  store_.executeScripts(request, deadline, [&](Request& wire, Script::By by) { call.addTo(wire, by); });
}

void Rates::check(const Request& request, std::size_t call, std::size_t charges) {
  const Reply& reply = accepted(request.reply(call));
  if (reply.items.size() != 1 + numbersPerCharge * charges) store_.unexpected(request);
}

// The outcome of the index-th of the charges that were asked together.
void Rates::conclude(RateCharge& charge, const Reply& reply, std::size_t index) {
  const auto numbers = std::span(reply.items).subspan(1 + numbersPerCharge * index, numbersPerCharge);
  (void)accepted(numbers[0]);
  const auto isNumber = [](const Reply& item) {
    return item.kind == ReplyKind::integer && canBeOfState(item.integer);
  };
  if (!isNumber(reply.items[0]) || !std::all_of(numbers.begin(), numbers.end(), isNumber) ||
      numbers[0].integer > charge.times) {
    // The reply is well formed: the fault is this key's, and the connection is good for the others.
    throw ProtocolError("the limit's key holds something that is no limit");
  }
  charge.outcome = outcomeOf(charge, {.state = {numbers[1].integer, numbers[2].integer},
                                      .now = reply.items[0].integer,
                                      .granted = numbers[0].integer,
                                      .leavesFirst = numbers[3].integer});
}

bool Rates::refund(const RateRefund& refund, Instant deadline) {
  const std::string stored = limitKey(refund.key, refund.law->kind);
  const std::string_view keys[] = {stored};
  const ScriptWords words = wordsOf(refund);
  Request request;
  store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
    Script::rateRefund().addTo(call, by, keys, words.words());
  });
  const Reply& reply = accepted(request.reply(0));
  if (!reply.isInteger(0) && !reply.isInteger(1)) store_.unexpected(request);
  return reply.integer == 1;
}

void Rates::reset(std::string_view key, RateKind kind, Instant deadline) {
  Request request;
  request.add({"DEL", limitKey(key, kind)});
  store_.execute(request, deadline);
  if (accepted(request.reply(0)).kind != ReplyKind::integer) store_.unexpected(request);
}

// The reply, unless it is an error.
const Reply& Rates::accepted(const Reply& reply) {
  if (reply.kind != ReplyKind::error) return reply;
  if (isError(reply, "CROSSSLOT")) {
    throw ConfigError(store_.name() +
                      " is part of a cluster: limits that are asked together need one hash tag in "
                      "their keys, such as {user:7}");
  }
  store_.refuse(reply, needs);
}

}  // namespace lockkeeper::redis
