#include "lockkeeper/migration/board.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view rulesNotice = "rules";
constexpr std::string_view memberNotices = "member ";
constexpr std::string_view sightingNotice = "sighting";
constexpr std::string_view inTheWayNotice = "sighting in the way";

// A notice is lines of text, whose meaning is their order.
class Lines {
 public:
  Lines(std::string_view notice, std::string_view text) : notice_(notice), rest_(text) {}

  std::string_view next() {
    const auto end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }

  std::uint64_t number() {
    const std::string_view line = next();
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (fault != std::errc{} || end != line.data() + line.size()) refuse();
    return value;
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

  [[noreturn]] void refuse() const {
    throw ProtocolError("the migration's board has a notice " + quoted(notice_) +
                        " that this version cannot read");
  }

 private:
  const std::string_view notice_;
  std::string_view rest_;
};

void readRules(const SharedRecord& notice, BoardState& state) {
  Lines lines(notice.name, notice.text);
  state.version = lines.number();
  state.settled = lines.rules();
  if (lines.number() == 1) state.target = lines.rules();
  state.since = notice.age;
  state.rulesText = notice.text;
}

std::string rulesText(std::uint64_t version, const Rules& settled, const std::optional<Rules>& target) {
  std::string text = std::to_string(version) + "\n" + settled.text();
  return target ? text + "\n1\n" + target->text() : text + "\n0";
}

Member readMember(const SharedRecord& notice) {
  Lines lines(notice.name, notice.text);
  Member member;
  member.id = notice.name.substr(memberNotices.size());
  member.version = lines.number();
  member.target = lines.rules();
  member.drained = lines.number() == 1;
  member.lease = lines.length();
  member.settle = lines.length();
  member.silent = notice.age;
  for (std::string_view label = lines.next(); !label.empty(); label = lines.next()) {
    member.labels.emplace_back(label);
  }
  return member;
}

std::string memberText(const Member& member) {
  std::string text = std::to_string(member.version) + "\n" + member.target.text() + "\n" +
                     (member.drained ? "1" : "0") + "\n" + std::to_string(member.lease.count()) + "\n" +
                     std::to_string(member.settle.count());
  for (const std::string& label : member.labels) text.append("\n").append(label);
  return text;
}

BoardState stateOf(const std::vector<SharedRecord>& notices) {
  BoardState state;
  for (const SharedRecord& notice : notices) {
    if (notice.name == rulesNotice) {
      readRules(notice, state);
    } else if (notice.name.starts_with(memberNotices)) {
      state.members.push_back(readMember(notice));
    } else if (notice.name == sightingNotice) {
      state.sighting = Sighting{notice.text, notice.age};
    } else if (notice.name == inTheWayNotice) {
      state.inTheWay = Sighting{notice.text, notice.age};
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
  for (const std::string& label : labels) all.append(all.empty() ? "" : ",").append(label);
  return all;
}

bool BoardState::knows(std::string_view label) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& member) {
    return std::find(member.labels.begin(), member.labels.end(), label) != member.labels.end();
  });
}

MigrationBoard::MigrationBoard(std::shared_ptr<SharedRecords> board, std::string name)
    : board_(std::move(board)), name_(std::move(name)) {}

BoardState MigrationBoard::beat(const Member& self, Instant deadline) {
  const std::string notice = std::string(memberNotices) + self.id;
  return stateOf(board_->write(name_, notice, memberText(self), self.settle, deadline));
}

BoardState MigrationBoard::look(Instant deadline) { return stateOf(board_->read(name_, deadline)); }

bool MigrationBoard::change(const BoardState& seen, std::uint64_t version, const Rules& settled,
                            const std::optional<Rules>& target, Instant deadline) {
  return board_->replace(name_, rulesNotice, seen.rulesText, rulesText(version, settled, target), deadline);
}

void MigrationBoard::sighted(std::string_view key, bool inTheWay, Instant deadline) {
  board_->write(name_, sightingNotice, key, std::nullopt, deadline);
  if (inTheWay) board_->write(name_, inTheWayNotice, key, std::nullopt, deadline);
}

void MigrationBoard::leave(const std::string& id, Instant deadline) {
  board_->remove(name_, std::string(memberNotices) + id, deadline);
}

}  // namespace lockkeeper::migration
