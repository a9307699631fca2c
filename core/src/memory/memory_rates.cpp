#include "memory/memory_rates.h"

namespace lockkeeper::detail {

namespace {

std::size_t familyOf(RateKind kind) {
  if (isBucket(kind)) return 0;
  return kind == RateKind::slidingWindow ? 1 : 2;
}

}  // namespace

void MemoryRates::take(std::span<RateCharge> charges, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  const std::int64_t present = now();
  if (charges.size() > 1 && !lookAtAll(charges, present)) return;
  for (RateCharge& each : charges) charge(each, present);
}

void MemoryRates::peek(std::span<RateCharge> charges, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  lookAtAll(charges, now());
}

bool MemoryRates::refund(const RateRefund& refund, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  const RateLaw& law = *refund.law;
  Cells& cells = cellsOf(law.kind);
  const auto found = cells.find(refund.key);
  if (found == cells.end()) return false;
  Cell& cell = found->second;
  if (law.kind != RateKind::slidingWindow) return giveBack(refund, cell.state, now());
  return giveBack(refund, cell.log, now());
}

void MemoryRates::reset(std::string_view key, RateKind kind, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  Cells& cells = cellsOf(kind);
  const auto found = cells.find(key);
  if (found != cells.end()) cells.erase(found);
}

std::int64_t MemoryRates::now() const {
  return std::chrono::floor<std::chrono::microseconds>(clock_->now()).time_since_epoch().count();
}

MemoryRates::Cells& MemoryRates::cellsOf(RateKind kind) { return cells_[familyOf(kind)]; }

bool MemoryRates::lookAtAll(std::span<RateCharge> charges, std::int64_t now) {
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

void MemoryRates::charge(RateCharge& charge, std::int64_t now) {
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
    cell.expiry = cell.log.empty() ? 0 : cell.log.back() + charge.law->period;
  } else {
    reading.granted = admit(charge, cell.state, now);
    reading.state = cell.state;
    reading.now = now;
    cell.expiry = expiryOf(*charge.law, cell.state);
  }
  charge.outcome = outcomeOf(charge, reading);
}

// Keys that are full again take memory until somebody asks for them: clear them away now and then.
void MemoryRates::sweep(Cells& cells, std::int64_t now) {
  std::size_t& sweepAt = sweepAt_[static_cast<std::size_t>(&cells - cells_.data())];
  if (cells.size() < sweepAt) return;
  std::erase_if(cells, [&](const auto& entry) { return entry.second.expiry <= now; });
  sweepAt = std::max<std::size_t>(1024, 2 * cells.size());
}

}  // namespace lockkeeper::detail
