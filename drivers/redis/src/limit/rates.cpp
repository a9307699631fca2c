#include "limit/rates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/driver/rate_rules.h"
#include "wire/protocol/script.h"
#include "wire/protocol/script_words.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t wordsPerCharge = 7;
constexpr std::size_t numbersPerCharge = 4;
constexpr std::string_view needs =
    "+@connection +info +time +get +set +del +pexpireat +llen +lindex +ltrim +rpush +eval +evalsha, on the "
    "keys "
    "of the limits";

std::string_view letterOf(RateKind kind) {
  if (isBucket(kind)) return "b";
  return kind == RateKind::slidingWindow ? "l" : "w";
}

// The reserved mark comes first, so that no lock has this key and a hash tag in the caller's key still
// counts.
std::string storedKey(std::string_view key, RateKind kind) {
  std::string stored;
  stored.reserve(reservedMark.size() + 2 + key.size());
  return stored.append(reservedMark).append(letterOf(kind)).append(":").append(key);
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

Rates::Rates(RedisStore& store)
    : store_(store), groups_(store.clock(), [this](std::span<GroupedCharge> group, Instant deadline) {
        grouped_ ? decideEach(group, deadline) : decideApart(group, deadline);
      }) {}

void Rates::take(std::span<RateCharge> charges, Instant deadline) {
  if (charges.size() == 1) return groups_.decide(charges.front(), deadline);
  decideTogether(charges, "take", deadline);
}

void Rates::peek(std::span<RateCharge> charges, Instant deadline) {
  decideTogether(charges, "peek", deadline);
}

void Rates::decideTogether(std::span<RateCharge> charges, std::string_view mode, Instant deadline) {
  std::vector<RateCharge*> pointers;
  for (RateCharge& each : charges) pointers.push_back(&each);
  Request request;
  ask(request, pointers, mode, deadline);
  check(request, charges.size());
  for (std::size_t index = 0; index < charges.size(); ++index) conclude(charges[index], request, index);
}

// An error of one key's is nobody else's matter.
void Rates::decideEach(std::span<GroupedCharge> group, Instant deadline) {
  std::vector<RateCharge*> pointers;
  for (const GroupedCharge& each : group) pointers.push_back(each.charge);
  Request request;
  const Reply& reply = ask(request, pointers, "each", deadline);
  if (group.size() > 1 && (isError(reply, "CROSSSLOT") || isError(reply, "NOPERM"))) {
    grouped_ = false;
    return decideApart(group, deadline);
  }
  check(request, group.size());
  for (std::size_t index = 0; index < group.size(); ++index) {
    try {
      conclude(*group[index].charge, request, index);
    } catch (const Error&) {
      group[index].failure = std::current_exception();
    }
  }
}

void Rates::decideApart(std::span<GroupedCharge> group, Instant deadline) {
  for (GroupedCharge& each : group) {
    try {
      decideEach({&each, 1}, deadline);
    } catch (const Error&) {
      each.failure = std::current_exception();
    }
  }
}

const Reply& Rates::ask(Request& request, std::span<RateCharge* const> charges, std::string_view mode,
                        Instant deadline) {
  std::vector<std::string> stored;
  std::vector<std::string_view> keys;
  stored.reserve(charges.size());
  keys.reserve(charges.size());
  ScriptWords words(1 + wordsPerCharge * charges.size());
  words.add(mode);
  for (const RateCharge* each : charges) {
    keys.push_back(stored.emplace_back(storedKey(each->key, each->law->kind)));
    addCharge(words, *each);
  }
  store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
    Script::rateTake().addTo(call, by, keys, words.words());
  });
  return request.reply(0);
}

void Rates::check(const Request& request, std::size_t charges) {
  if (accepted(request.reply(0)).items.size() != 1 + numbersPerCharge * charges) store_.unexpected(request);
}

// The outcome of the index-th of the charges that were asked together.
void Rates::conclude(RateCharge& charge, const Request& request, std::size_t index) {
  const Reply& reply = request.reply(0);
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
  const std::string stored = storedKey(refund.key, refund.law->kind);
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
  request.add({"DEL", storedKey(key, kind)});
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
