#include "limit/memory_rates.h"

#include <algorithm>

namespace lockkeeper::detail {

namespace {

constexpr std::chrono::microseconds betweenRooms = std::chrono::seconds{1};

std::size_t familyOf(RateKind kind) {
  if (isBucket(kind)) return 0;
  return kind == RateKind::slidingWindow ? 1 : 2;
}

std::int64_t expiryOf(const RateLaw& law, const RateLog& log) {
  return log.empty() ? 0 : log.back() + law.period;
}

}  // namespace

MemoryRates::MemoryRates(std::shared_ptr<Clock> clock, std::size_t mostKeys)
    : clock_(std::move(clock)),
      sinceEpoch_(clock_->wallNow().time_since_epoch() - clock_->now().time_since_epoch()),
      mostKeys_(mostKeys) {}

void MemoryRates::take(std::span<RateCharge> charges, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  const std::int64_t present = now();
  if (!makeRoom(charges, present)) return refuseNew(charges, present);
  if (charges.size() > 1 && !peekAll(charges, present)) return;
  for (RateCharge& each : charges) charge(each, present);
}

void MemoryRates::peek(std::span<RateCharge> charges, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  peekAll(charges, now());
}

bool MemoryRates::refund(const RateRefund& refund, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  const RateLaw& law = *refund.law;
  Cells& cells = cellsOf(law.kind);
  const auto found = cells.find(refund.key);
  if (found == cells.end()) return false;
  Cell& cell = found->second;
  const bool isLog = law.kind == RateKind::slidingWindow;
  const bool given = isLog ? applyRefund(refund, cell.log, now()) : applyRefund(refund, cell.state, now());
  cell.expiry = isLog ? expiryOf(law, cell.log) : expiryOf(law, cell.state);
  return given;
}

void MemoryRates::reset(std::string_view key, RateKind kind, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  Cells& cells = cellsOf(kind);
  const auto found = cells.find(key);
  if (found != cells.end()) cells.erase(found);
}

std::int64_t MemoryRates::now() const {
  const std::chrono::nanoseconds present = clock_->now().time_since_epoch() + sinceEpoch_;
  return std::chrono::floor<std::chrono::microseconds>(present).count();
}

MemoryRates::Cells& MemoryRates::cellsOf(RateKind kind) { return cells_[familyOf(kind)]; }

bool MemoryRates::peekAll(std::span<RateCharge> charges, std::int64_t now) {
  static const Cell& unused = *new Cell();
  bool fits = true;
  for (RateCharge& each : charges) {
    const Cells& cells = cellsOf(each.law->kind);
    const auto found = cells.find(each.key);
    const Cell& cell = found == cells.end() ? unused : found->second;
    each.outcome = outcomeOf(each, each.law->kind == RateKind::slidingWindow ? lookAt(each, cell.log, now)
                                                                             : lookAt(each, cell.state, now));
    fits = fits && each.outcome.granted == each.times;
  }
  return fits;
}

bool MemoryRates::isNew(const RateCharge& charge) {
  return charge.cost > 0 && !cellsOf(charge.law->kind).contains(charge.key);
}

bool MemoryRates::makeRoom(std::span<const RateCharge> charges, std::int64_t now) {
  const auto fits = [&](std::size_t added) {
    return cells_[0].size() + cells_[1].size() + cells_[2].size() + added <= mostKeys_;
  };
  if (fits(charges.size())) return true;
  const auto added = static_cast<std::size_t>(
      std::ranges::count_if(charges, [&](const RateCharge& each) { return isNew(each); }));
  if (added == 0 || fits(added)) return true;
  if (now < nextRoom_) return false;
  nextRoom_ = now + betweenRooms.count();
  for (Cells& cells : cells_) clear(cells, now);
  return fits(added);
}

void MemoryRates::refuseNew(std::span<RateCharge> charges, std::int64_t now) {
  peekAll(charges, now);
  for (RateCharge& each : charges) {
    if (isNew(each)) each.outcome = {.retryAfter = betweenRooms, .storeTime = now};
  }
}

void MemoryRates::charge(RateCharge& charge, std::int64_t now) {
  if (charge.cost == 0) {
    peekAll({&charge, 1}, now);
    return;
  }
  Cells& cells = cellsOf(charge.law->kind);
  auto found = cells.find(charge.key);
  if (found == cells.end()) {
    sweep(cells, now);
    found = cells.try_emplace(std::string(charge.key)).first;
  }
  Cell& cell = found->second;
  RateReading reading;
  if (charge.law->kind == RateKind::slidingWindow) {
    reading = admit(charge, cell.log, now);
    cell.expiry = expiryOf(*charge.law, cell.log);
  } else {
    reading.granted = admit(charge, cell.state, now);
    reading.state = cell.state;
    reading.now = now;
    cell.expiry = expiryOf(*charge.law, cell.state);
  }
  charge.outcome = outcomeOf(charge, reading);
}

void MemoryRates::clear(Cells& cells, std::int64_t now) {
  std::erase_if(cells, [&](const auto& entry) { return entry.second.expiry <= now; });
}

// Keys that are full again take memory until somebody asks for them: clear them away now and then.
void MemoryRates::sweep(Cells& cells, std::int64_t now) {
  std::size_t& sweepAt = sweepAt_[static_cast<std::size_t>(&cells - cells_.data())];
  if (cells.size() < sweepAt) return;
  clear(cells, now);
  sweepAt = std::max<std::size_t>(1024, 2 * cells.size());
}

}  // namespace lockkeeper::detail
