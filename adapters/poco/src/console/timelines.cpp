#include "console/timelines.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostKeys = 500;
constexpr std::size_t mostEntries = 32;
constexpr std::size_t longestDetail = 200;
constexpr std::size_t mostLatest = 12;
constexpr std::size_t mostLosses = 50;

std::string entryJson(const TimelineEntry& entry) {
  const auto took =
      entry.took ? std::chrono::duration_cast<std::chrono::milliseconds>(*entry.took).count() : 0;
  return jsonArray({std::to_string(inMilliseconds(entry.at)), entry.before ? "1" : "0",
                    jsonString(entry.what), jsonStringOrNull(entry.detail),
                    (entry.fence ? "\"" + std::to_string(*entry.fence) + "\"" : "null"),
                    entry.took ? std::to_string(took) : "null"});
}

std::string entriesJson(const std::vector<TimelineEntry>& entries) {
  std::string items;
  for (const TimelineEntry& each : entries) appendItem(items, entryJson(each));
  return "[" + items + "]";
}

}  // namespace

void Timelines::add(std::string_view key, TimelineEntry entry) {
  if (const auto known = byKey_.find(key); known != byKey_.end()) {
    lines_.splice(lines_.begin(), lines_, known->second);
  } else {
    if (lines_.size() == mostKeys) {
      byKey_.erase(lines_.back().key);
      lines_.pop_back();
    }
    lines_.push_front({.key = std::string(key), .entries = {}});
    byKey_.emplace(lines_.front().key, lines_.begin());
  }
  auto& entries = lines_.front().entries;
  if (entries.size() == mostEntries) entries.erase(entries.begin());
  if (entry.detail.size() > longestDetail) entry.detail = printable(entry.detail, longestDetail);
  if (entry.isLoss) {
    if (losses_.size() == mostLosses) losses_.pop_back();
    losses_.emplace_front(key, entry);
  }
  entries.push_back(std::move(entry));
}

std::string Timelines::entriesOf(std::string_view shownKey, const KeyScope& scope) const {
  for (const Line& line : lines_) {
    if (scope.has(line.key) && scope.shown(line.key) == shownKey) return entriesJson(line.entries);
  }
  return "[]";
}

std::string Timelines::latest(const KeyScope& scope) const {
  std::string items;
  std::size_t left = mostLatest;
  for (const Line& line : lines_) {
    if (!scope.has(line.key)) continue;
    if (left-- == 0) break;
    appendItem(items, jsonArray({jsonString(scope.shown(line.key)), entriesJson(line.entries)}));
  }
  return "[" + items + "]";
}

std::string Timelines::losses(const KeyScope& scope) const {
  std::string items;
  for (const auto& [key, entry] : losses_) {
    if (scope.has(key)) appendItem(items, jsonArray({jsonString(scope.shown(key)), entryJson(entry)}));
  }
  return "[" + items + "]";
}

}  // namespace lockkeeper::poco
