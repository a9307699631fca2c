#include "rates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockkeeper/key.h"
#include "lockkeeper/rate_rules.h"
#include "script.h"
#include "script_words.h"

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

RateReading readingOf(const Reply* numbers, std::int64_t now) {
  return {.state = {numbers[1].integer, numbers[2].integer},
          .now = now,
          .granted = numbers[0].integer,
          .leavesFirst = numbers[3].integer};
}

}  // namespace

void Rates::decide(std::span<RateCharge> charges, std::string_view mode, Instant deadline) {
  std::vector<std::string> stored;
  std::vector<std::string_view> keys;
  stored.reserve(charges.size());
  keys.reserve(charges.size());
  ScriptWords words(1 + wordsPerCharge * charges.size());
  words.add(mode);
  for (const RateCharge& each : charges) {
    keys.push_back(stored.emplace_back(storedKey(each.key, each.law->kind)));
    addCharge(words, each);
  }
  Request request;
  executeScripts(store_.channel, request, deadline, [&](Request& call, Script::By by) {
    Script::rateTake().addTo(call, by, keys, words.words());
  });
  const Reply& reply = answer(request);
  const auto isNumber = [](const Reply& item) {
    return item.kind == ReplyKind::integer && item.integer >= 0;
  };
  if (reply.items.size() != 1 + numbersPerCharge * charges.size() ||
      !std::all_of(reply.items.begin(), reply.items.end(), isNumber)) {
    store_.unexpected();
  }
  const std::int64_t now = reply.items[0].integer;
  for (std::size_t index = 0; index < charges.size(); ++index) {
    RateCharge& charge = charges[index];
    const RateReading reading = readingOf(&reply.items[1 + numbersPerCharge * index], now);
    if (reading.granted > charge.times) store_.unexpected();
    charge.outcome = outcomeOf(charge, reading);
  }
}

bool Rates::refund(const RateRefund& refund, Instant deadline) {
  const std::string stored = storedKey(refund.key, refund.law->kind);
  const std::string_view keys[] = {stored};
  const ScriptWords words = wordsOf(refund);
  Request request;
  executeScripts(store_.channel, request, deadline, [&](Request& call, Script::By by) {
    Script::rateRefund().addTo(call, by, keys, words.words());
  });
  const Reply& reply = answer(request);
  if (!reply.isInteger(0) && !reply.isInteger(1)) store_.unexpected();
  return reply.integer == 1;
}

void Rates::reset(std::string_view key, RateKind kind, Instant deadline) {
  Request request;
  request.add({"DEL", storedKey(key, kind)});
  store_.channel.execute(request, deadline);
  if (answer(request).kind != ReplyKind::integer) store_.unexpected();
}

const Reply& Rates::answer(const Request& request) {
  const Reply& reply = request.reply(0);
  if (reply.kind != ReplyKind::error) return reply;
  if (isError(reply, "CROSSSLOT")) {
    throw ConfigError(store_.connector.store() +
                      " is part of a cluster: limits that are asked together need one hash tag in "
                      "their keys, such as {user:7}");
  }
  store_.refuse(reply, needs);
}

}  // namespace lockkeeper::redis
