#include "lockkeeper/migration/state_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "stores/marked_store.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view rulesRecord = "rules";
constexpr std::string_view memberRecords = "member ";
constexpr std::string_view sightingRecord = "sighting";
constexpr std::string_view inTheWayRecord = "sighting in the way";
constexpr std::string_view watcherRecord = "watcher";
constexpr std::string_view scanRecord = "scan";

// The record of a member that has left begins with this, and its labels follow.
constexpr std::string_view departed = "departed";

// A record is lines of text, whose meaning is their order.
class Lines {
 public:
  Lines(std::string_view record, std::string_view text) : record_(record), rest_(text) {}

  std::string_view next() {
    const auto end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }

  std::uint64_t number() {
    const auto value = wholeNumber<std::uint64_t>(next());
    if (!value) refuse();
    return *value;
  }

  milliseconds length() {
    const std::uint64_t value = number();
    if (value > std::uint64_t{milliseconds(std::chrono::days{366}).count()}) refuse();
    return milliseconds(value);
  }

  Rules rules() {
    try {
      return Rules::parse(next());
    } catch (const ConfigError&) {
      refuse();
    }
  }

  std::string_view rest() const { return rest_; }

  void addRestTo(std::vector<std::string>& all) {
    for (std::string_view line = next(); !line.empty(); line = next()) all.emplace_back(line);
  }

  [[noreturn]] void refuse() const {
    throw ProtocolError("the migration's state has a record " + quoted(record_) +
                        " that this version cannot read");
  }

 private:
  const std::string_view record_;
  std::string_view rest_;
};

void readRules(const SharedRecord& record, MigrationState& state) {
  Lines lines(record.name, record.text);
  state.version = lines.number();
  state.current = lines.rules();
  // Without a target, processes of an earlier version go by their configuration: one in both meets them all.
  state.target = lines.number() == 1 ? lines.rules() : Rules(Phase::both);
  state.since = record.age;
  state.rulesText = record.text;
  state.rulesStamp = record.stamp;
}

ScanPlace readScan(const SharedRecord& record) {
  Lines lines(record.name, record.text);
  const std::uint64_t version = lines.number();
  return {version, std::string(lines.rest())};
}

std::string rulesText(std::uint64_t version, const Rules& current, const Rules& target) {
  return std::to_string(version) + "\n" + current.text() + "\n1\n" + target.text();
}

Member readMember(const SharedRecord& record) {
  Lines lines(record.name, record.text);
  Member member;
  member.id = record.name.substr(memberRecords.size());
  member.version = lines.number();
  lines.next();
  member.drained = lines.number() == 1;
  member.lease = lines.length();
  member.locksEndAfter = lines.length();
  member.silent = record.age;
  member.stamp = record.stamp;
  lines.addRestTo(member.labels);
  return member;
}

// Processes of an earlier version expect a member's rules in the second line.
std::string memberText(const Member& member) {
  std::string text = std::to_string(member.version) + "\nboth\n" + (member.drained ? "1" : "0") + "\n" +
                     std::to_string(member.lease.count()) + "\n" +
                     std::to_string(member.locksEndAfter.count());
  for (const std::string& label : member.labels) text.append("\n").append(label);
  return text;
}

MigrationState stateOf(const std::vector<SharedRecord>& records) {
  MigrationState state;
  for (const SharedRecord& record : records) {
    state.recordNames.push_back(record.name);
    if (record.name == rulesRecord) {
      readRules(record, state);
    } else if (record.name.starts_with(memberRecords)) {
      Lines lines(record.name, record.text);
      if (lines.next() == departed) {
        lines.addRestTo(state.departed);
        state.departedIds.push_back(record.name.substr(memberRecords.size()));
      } else {
        state.members.push_back(readMember(record));
      }
    } else if (record.name == sightingRecord) {
      state.sighting = Sighting{record.text, record.age, record.stamp};
    } else if (record.name == inTheWayRecord) {
      state.inTheWay = Sighting{record.text, record.age, record.stamp};
    } else if (record.name == watcherRecord) {
      state.watcher = record.text;
      state.watcherStamp = record.stamp;
    } else if (record.name == scanRecord) {
      state.scan = readScan(record);
    }
  }
  std::sort(state.members.begin(), state.members.end(),
            [](const Member& a, const Member& b) { return a.name() < b.name(); });
  return state;
}

}  // namespace

std::string Member::name() const {
  if (labels.empty()) return id;
  std::string all;
  for (const std::string& label : labels) all.append(all.empty() ? "" : ",").append(unmarkedLabel(label));
  return all;
}

bool MigrationState::knows(std::string_view label) const {
  const auto isAmong = [&](const std::vector<std::string>& labels) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  return isAmong(departed) || std::any_of(members.begin(), members.end(),
                                          [&](const Member& each) { return isAmong(each.labels); });
}

StateStore::StateStore(std::shared_ptr<SharedRecords> records, std::string name)
    : records_(std::move(records)), name_(std::move(name)) {}

void StateStore::heartbeat(const Member& self, MigrationState& known, Instant deadline) {
  const std::string name = std::string(memberRecords) + self.id;
  const std::array wanted{WantedRecord{rulesRecord, known.rulesStamp}, WantedRecord{watcherRecord}};
  const auto records = records_->write(name_, name, memberText(self), self.locksEndAfter, wanted, deadline);
  bool rules = false;
  known.watcher.clear();
  known.watcherStamp = 0;
  for (const SharedRecord& record : records) {
    if (record.name == watcherRecord) {
      known.watcher = record.text;
      known.watcherStamp = record.stamp;
    }
    if (record.name != rulesRecord) continue;
    rules = true;
    if (record.stamp != known.rulesStamp) readRules(record, known);
  }
  if (!rules) known = {};
}

MigrationState StateStore::read(Instant deadline) { return stateOf(records_->read(name_, deadline)); }

bool StateStore::change(const MigrationState& seen, std::uint64_t version, const Rules& current,
                        const Rules& target, Instant deadline) {
  return records_->replace(name_, rulesRecord, seen.rulesText, rulesText(version, current, target), {},
                           deadline);
}

bool StateStore::commit(const MigrationState& seen, Instant deadline) {
  // These may be new: they say nothing that the commit rests on.
  std::vector<KnownRecord> known = {{watcherRecord}, {scanRecord}, {sightingRecord}};
  for (const std::string& name : seen.recordNames)
    known.push_back({name, name == inTheWayRecord ? seen.inTheWay->stamp : 0});
  return records_->replace(name_, rulesRecord, seen.rulesText,
                           rulesText(seen.version + 1, seen.target, seen.target), known, deadline);
}

void StateStore::watch(std::string_view id, milliseconds keep, Instant deadline) {
  records_->write(name_, watcherRecord, id, keep, {}, deadline);
}

void StateStore::scanned(const ScanPlace& place, milliseconds keep, Instant deadline) {
  records_->write(name_, scanRecord, std::to_string(place.version) + "\n" + place.next, keep, {}, deadline);
}

void StateStore::sighted(std::string_view key, bool inTheWay, Instant deadline) {
  records_->write(name_, sightingRecord, key, std::nullopt, {}, deadline);
  if (inTheWay) records_->write(name_, inTheWayRecord, key, std::nullopt, {}, deadline);
}

void StateStore::leave(const Member& self, Instant deadline) {
  std::string text(departed);
  for (const std::string& label : self.labels) text.append("\n").append(label);
  records_->write(name_, std::string(memberRecords) + self.id, text, self.lease, {}, deadline);
}

}  // namespace lockkeeper::migration
