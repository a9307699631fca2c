#include "lock/keeper/lease_table.h"

#include <algorithm>

namespace lockkeeper::detail {

void LeaseTable::Part::reserve(std::size_t count) {
  ends.reserve(count);
  renewals.reserve(count);
  byToken.reserve(count);
}

void LeaseTable::Part::add(Lease& lease) {
  ends.add(lease);
  if (lease.renewAt != Instant::max()) renewals.add(lease);
  byToken.add(lease);
}

void LeaseTable::Part::remove(Lease& lease) {
  ends.remove(lease);
  renewals.remove(lease);
  byToken.remove(lease);
}

void LeaseTable::Part::stopExpecting(Lease& lease) noexcept {
  if (findExpected(lease.token) == &lease) expected.remove(lease);
}

Lease* LeaseTable::Part::find(const Token& token) const {
  return byToken.find(hashOf(token), [&](const Lease& each) { return each.token == token; });
}

Lease* LeaseTable::Part::findExpected(const Token& token) const {
  return expected.find(hashOf(token), [&](const Lease& each) { return each.token == token; });
}

template <class Heap>
Instant LeaseTable::firstOf(Heap Part::*heap) {
  Instant first = Instant::max();
  for (Part& part : parts_) {
    const std::lock_guard held(part.mutex);
    first = std::min(first, (part.*heap).firstTime());
  }
  return first;
}

Instant LeaseTable::firstRenewal() { return firstOf(&Part::renewals); }

Instant LeaseTable::firstEnd() { return firstOf(&Part::ends); }

std::size_t LeaseTable::plannedRenewals() {
  std::size_t count = 0;
  for (Part& part : parts_) {
    const std::lock_guard held(part.mutex);
    count += part.renewals.size();
  }
  return count;
}

std::size_t LeaseTable::suspects() {
  std::size_t count = 0;
  for (Part& part : parts_) {
    const std::lock_guard held(part.mutex);
    for (std::size_t index = 0; index < part.ends.size(); ++index) {
      if (part.ends.at(index).state.load(std::memory_order_relaxed) == LockState::suspect) ++count;
    }
  }
  return count;
}

}  // namespace lockkeeper::detail
