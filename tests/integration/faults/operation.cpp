#include "operation.h"

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"

namespace lockkeeper::test {
namespace {

void nothing(LockDriver&, const Claimant&) {}
void hold(LockDriver& direct, const Claimant& who) { ASSERT_TRUE(granted(direct.acquire(who.request()))); }
void holdByAnother(LockDriver& direct, const Claimant& who) {
  Claimant other;
  other.key = who.key;
  hold(direct, other);
}

std::string shown(const std::optional<Holder>& holder) {
  return holder ? holder->owner + " " + std::to_string(holder->fence.value_or(0)) : "free";
}

std::string acquire(LockDriver& driver, const Claimant& who, Instant deadline) {
  const AcquireResult result = driver.acquire(who.request(deadline));
  const auto* grant = std::get_if<Granted>(&result);
  return grant == nullptr ? "busy" : "granted " + std::to_string(grant->fence.value_or(0));
}

std::string renew(LockDriver& driver, const Claimant& who, Instant deadline) {
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver.renew({&renewal, 1}, deadline);
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      return "renewed";
    case RenewOutcome::notOwner:
      return "not owner";
    case RenewOutcome::ownerUnknown:
      return "uncertain";
    case RenewOutcome::unavailable:
      throw StoreUnavailable("renewal");
    case RenewOutcome::unknown:
      break;
  }
  throw OutcomeUnknown("renewal");
}

std::string release(LockDriver& driver, const Claimant& who, Instant deadline) {
  return driver.release(who.claim(), deadline) == ReleaseOutcome::released ? "released" : "not owner";
}

std::string look(LockDriver& driver, const Claimant& who, Instant deadline) {
  return shown(driver.holder(who.key, deadline));
}

std::string list(LockDriver& driver, const Claimant& who, Instant deadline) {
  std::string found;
  capability<Browsable>(driver)->list(
      who.key,
      [&](std::string_view key, const Holder& holder) {
        found += std::string(key) + " " + shown(holder) + "\n";
        return true;
      },
      deadline);
  return found;
}

std::string breakLock(LockDriver& driver, const Claimant& who, Instant deadline) {
  return capability<Breakable>(driver)->breakLock(who.key, deadline) ? "broken" : "was free";
}

using Direct = LockDriver;

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      {"AcquireFree", true, nothing, acquire,
       [](Direct& direct, const Claimant& who) {
         const auto holder = direct.holder(who.key, soon());
         return "granted " + std::to_string(holder ? holder->fence.value_or(0) : 0);
       }},
      {"AcquireBusy", true, holdByAnother, acquire,
       [](Direct&, const Claimant&) -> std::string { return "busy"; }},
      {"RenewHeld", true, hold, renew, [](Direct&, const Claimant&) -> std::string { return "renewed"; }},
      {"RenewLost", true, holdByAnother, renew,
       [](Direct&, const Claimant&) -> std::string { return "not owner"; }},
      {"ReleaseHeld", true, hold, release,
       [](Direct&, const Claimant&) -> std::string { return "released"; }},
      {"ReleaseLost", true, holdByAnother, release,
       [](Direct&, const Claimant&) -> std::string { return "not owner"; }},
      {"HolderOfHeld", false, hold, look,
       [](Direct& direct, const Claimant& who) { return look(direct, who, soon()); }},
      {"HolderOfFree", false, nothing, look, [](Direct&, const Claimant&) -> std::string { return "free"; }},
      {"List", false, hold, list,
       [](Direct& direct, const Claimant& who) { return who.key + " " + look(direct, who, soon()) + "\n"; }},
      {"Break", true, hold, breakLock, [](Direct&, const Claimant&) -> std::string { return "broken"; }},
  };
  return all;
}

void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

std::string attempt(const Operation& operation, LockDriver& driver, const Claimant& who, Instant deadline) {
  try {
    return operation.perform(driver, who, deadline);
  } catch (const Error& error) {
    return std::string("error: ") + toString(error.code());
  }
}

}  // namespace lockkeeper::test
