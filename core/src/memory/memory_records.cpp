#include "memory/memory_records.h"

#include <algorithm>

namespace lockkeeper::detail {

MemoryRecords::Table& MemoryRecords::current(std::string_view table) {
  Table& found = tables_.try_emplace(std::string(table)).first->second;
  std::erase_if(found, [now = clock_->now()](const auto& entry) { return entry.second.end <= now; });
  return found;
}

SharedRecord MemoryRecords::shown(const Table::value_type& entry) const {
  const auto& [name, written] = entry;
  return {name, written.text,
          std::chrono::duration_cast<std::chrono::milliseconds>(clock_->now() - written.since),
          written.stamp};
}

std::vector<SharedRecord> MemoryRecords::write(std::string_view table, std::string_view name,
                                               std::string_view text,
                                               std::optional<std::chrono::milliseconds> keep,
                                               std::span<const WantedRecord> wanted, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  Table& found = current(table);
  const Instant now = clock_->now();
  const Instant end = keep ? saturatingAdd(now, *keep) : Instant::max();
  found.insert_or_assign(std::string(name), Written{std::string(text), now, ++writes_, end});
  std::vector<SharedRecord> all;
  for (const WantedRecord& each : wanted) {
    const auto entry = found.find(each.name);
    if (entry == found.end()) continue;
    all.push_back(shown(*entry));
    if (entry->second.stamp == each.known) all.back().text.clear();
  }
  return all;
}

std::vector<SharedRecord> MemoryRecords::read(std::string_view table, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  std::vector<SharedRecord> all;
  for (const auto& entry : current(table)) all.push_back(shown(entry));
  return all;
}

bool MemoryRecords::replace(std::string_view table, std::string_view name,
                            const std::optional<std::string>& expected, std::string_view text,
                            std::span<const KnownRecord> known, Instant /*deadline*/) {
  const auto held = mutex_.lock();
  Table& records = current(table);
  const auto found = records.find(name);
  const bool same =
      expected ? found != records.end() && found->second.text == *expected : found == records.end();
  if (!same) return false;
  const auto isKnown = [&](const auto& entry) {
    const auto seen = std::ranges::find(known, entry.first, &KnownRecord::name);
    return entry.first == name ||
           (seen != known.end() && (seen->stamp == 0 || seen->stamp == entry.second.stamp));
  };
  if (!known.empty() && !std::ranges::all_of(records, isKnown)) return false;
  records.insert_or_assign(std::string(name),
                           Written{std::string(text), clock_->now(), ++writes_, Instant::max()});
  return true;
}

}  // namespace lockkeeper::detail
