#include "console/activity_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/poco/console/recent_activity.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostWaits = 200;
constexpr std::size_t mostHottest = 20;
constexpr std::size_t longestText = 200;

std::string whole(double value) { return std::to_string(std::llround(value)); }

}  // namespace

void ActivityLog::on(const Event& event) {
  const std::lock_guard guard(mutex_);
  switch (event.kind) {
    case EventKind::acquired:
      countWait(event);
      return addEntry(event, "granted", "", true);
    case EventKind::timedOut:
      countWait(event);
      return addEntry(event, "busy", "", true);
    case EventKind::gaveUp:
      countWait(event);
      return addEntry(event, "gave up", event.error ? toString(*event.error) : "", true);
    case EventKind::renewalFailed:
      return addEntry(event, "not renewed", std::string(event.text), false);
    case EventKind::lost:
      return addEntry(event, "lost", toString(event.loss), true);
    case EventKind::released:
      return addEntry(event, "released", "", true);
    case EventKind::decided:
      return countDecision(event);
    case EventKind::attemptFailed:
    case EventKind::nodeAsked:
      return countStore(event);
    case EventKind::taskEnded:
    case EventKind::taskPlanned:
      return countTask(event);
    case EventKind::termBegan: {
      Election& election = elections_.of(event.key);
      election = {.leads = true, .since = event.ended, .terms = election.terms + 1};
      return;
    }
    case EventKind::termEnded: {
      Election& election = elections_.of(event.key);
      election = {.leads = false, .since = event.ended, .terms = election.terms};
      return;
    }
    case EventKind::phaseChanged:
      migrations_.of(event.key) = {.rules = printable(event.text, longestText), .since = event.ended};
      return;
    default:
      return;  // told by the metrics
  }
}

void ActivityLog::addEntry(const Event& event, std::string_view what, std::string detail, bool timed) {
  timelines_.add(event.key, {.at = event.ended,
                             .what = what,
                             .detail = std::move(detail),
                             .fence = event.fence,
                             .took = timed ? std::optional(event.duration()) : std::nullopt,
                             .isLoss = event.kind == EventKind::lost});
}

// A new key takes the place of the one that was waited for least: those that are waited for long stay,
// however many others come and go.
void ActivityLog::countWait(const Event& event) {
  auto place = waits_.find(event.key);
  if (place == waits_.end()) {
    if (waits_.size() == mostWaits) {
      waits_.erase(std::ranges::min_element(
          waits_, {}, [&](const auto& each) { return each.second.milliseconds.sum(event.ended); }));
    }
    place = waits_.emplace(event.key, Waits{}).first;
  }
  Waits& waits = place->second;
  waits.milliseconds.add(event.ended, std::chrono::duration<double, std::milli>(event.duration()).count());
  waits.calls.add(event.ended, 1);
  if (event.kind != EventKind::acquired) waits.unserved.add(event.ended, 1);
}

void ActivityLog::countDecision(const Event& event) {
  Limit& limit = limits_.of(event.decision->policy);
  if (event.decision->outage) limit.inOutage.add(event.ended, 1);
  if (event.decision->allowed) return limit.allowed.add(event.ended, 1);
  limit.refused.add(event.ended, 1);
  limit.lastRefusal = event.ended;
}

void ActivityLog::countTask(const Event& event) {
  Task& task = tasks_.of(event.key);
  if (event.kind == EventKind::taskPlanned) {
    task.next = event.ended + event.remaining;
    return;
  }
  if (event.task == TaskOutcome::skipped) {
    ++task.skips;
    return;
  }
  if (event.task == TaskOutcome::missed)
    ++task.missed;
  else
    ++task.runs;
  task.lastRun = event.ended;
  task.outcome = toString(event.task);
  task.text = printable(event.text, longestText);
}

void ActivityLog::countStore(const Event& event) {
  if (event.store.empty()) return;
  const bool answered = event.node == NodeOutcome::agreed || event.node == NodeOutcome::refused;
  if (event.kind == EventKind::nodeAsked && event.node == NodeOutcome::unanswered)
    return;  // too late to count
  Store& store = stores_.of(event.store);
  const bool up = event.kind == EventKind::nodeAsked && answered;
  if (!up) {
    store.failures.add(event.ended, 1.0 + static_cast<double>(event.leftOut));
    store.text =
        event.kind == EventKind::nodeAsked ? toString(event.node) : printable(event.text, longestText);
  }
  if (store.up != up || !up) store.since = event.ended;
  store.up = up;
}

std::string ActivityLog::hottest(const KeyScope& scope, Instant now) const {
  std::vector<std::pair<double, const std::pair<const std::string, Waits>*>> order;
  for (const auto& each : waits_) {
    const double sum = each.second.milliseconds.sum(now);
    if (sum >= 1 && scope.has(each.first)) order.emplace_back(sum, &each);
  }
  std::ranges::sort(order, [](const auto& one, const auto& other) { return one.first > other.first; });
  if (order.size() > mostHottest) order.resize(mostHottest);
  std::string items;
  for (const auto& [sum, each] : order) {
    appendItem(items, jsonArray({jsonString(scope.shown(each->first)), whole(sum),
                                 whole(each->second.calls.sum(now)), whole(each->second.unserved.sum(now))}));
  }
  return items;
}

std::string ActivityLog::limits(Instant now) const {
  std::string items;
  for (const auto& [name, limit] : limits_.all()) {
    appendItem(items,
               jsonArray({jsonString(name), whole(limit.allowed.sum(now)), whole(limit.refused.sum(now)),
                          whole(limit.inOutage.sum(now)), jsonTimeOrNull(limit.lastRefusal)}));
  }
  return items;
}

std::string ActivityLog::tasks() const {
  std::string items;
  for (const auto& [name, task] : tasks_.all()) {
    appendItem(items,
               jsonArray({jsonString(name), jsonTimeOrNull(task.lastRun), jsonStringOrNull(task.outcome),
                          jsonStringOrNull(task.text), jsonTimeOrNull(task.next), std::to_string(task.runs),
                          std::to_string(task.skips), std::to_string(task.missed)}));
  }
  return items;
}

std::string ActivityLog::elections() const {
  std::string items;
  for (const auto& [name, election] : elections_.all()) {
    appendItem(items, jsonArray({jsonString(name), election.leads ? "1" : "0", jsonTimeOrNull(election.since),
                                 std::to_string(election.terms)}));
  }
  return items;
}

std::string ActivityLog::migrations() const {
  std::string items;
  for (const auto& [name, migration] : migrations_.all()) {
    appendItem(items, migrationRow(name, migration.rules, migration.since));
  }
  return items;
}

std::string ActivityLog::stores(Instant now) const {
  std::string items;
  for (const auto& [name, store] : stores_.all()) {
    appendItem(items, jsonArray({jsonString(name), store.up ? "1" : "0", jsonTimeOrNull(store.since),
                                 whole(store.failures.sum(now)), jsonStringOrNull(store.text)}));
  }
  return items;
}

std::string ActivityLog::json(const KeyScope& scope, std::string_view shownKey, Instant now) const {
  const std::lock_guard guard(mutex_);
  return R"({"latest":)" + timelines_.latest(scope) + R"(,"timeline":)" +
         timelines_.entriesOf(shownKey, scope) + R"(,"lost":)" + timelines_.losses(scope) +
         R"(,"hottest":[)" + hottest(scope, now) + R"(],"limits":[)" + limits(now) + R"(],"tasks":[)" +
         tasks() + R"(],"elections":[)" + elections() + R"(],"migrations":[)" + migrations() +
         R"(],"stores":[)" + stores(now) + "]}";
}

RecentActivity::RecentActivity() : log_(std::make_shared<ActivityLog>()) {}

RecentActivity::~RecentActivity() = default;

void RecentActivity::on(const Event& event) { log_->on(event); }

}  // namespace lockkeeper::poco
