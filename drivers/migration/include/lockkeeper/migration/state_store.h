#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/migration/export.h"
#include "lockkeeper/migration/rules.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::migration {

/// What a process says about itself with each heartbeat.
struct LOCKKEEPER_MIGRATION_EXPORT Member {
  std::string id;                   ///< Its own, for as long as it lives.
  std::vector<std::string> labels;  ///< Under which its locks are held ("host:pid").
  std::uint64_t version = 0;        ///< Of the rules that it follows; 0: of none yet.
  bool drained = true;  ///< It holds no lock in a phase other than `both` and that of these rules' target.
  std::chrono::milliseconds lease{};  ///< How long after a heartbeat it takes locks in one store only.
  std::chrono::milliseconds locksEndAfter{};  ///< How long after a heartbeat such locks may live.
  std::chrono::milliseconds silent{};         ///< Since its last heartbeat, on the store's clock.
  std::uint64_t stamp = 0;                    ///< SharedRecord::stamp.

  /// Its labels, or its id where it has none.
  std::string name() const;
};

/// A holder in the old store that is no member.
struct Sighting {
  std::string key;
  std::chrono::milliseconds ago{};
  std::uint64_t stamp = 0;  ///< SharedRecord::stamp.
};

/// How far the old store has been looked through.
struct ScanPlace {
  std::uint64_t version = 0;  ///< Of the rules for which that was done.
  std::string next;           ///< Where the rest begins, as Browsable::listBusy() has returned it.
};

/// What the processes of a migration have agreed on, at one moment.
struct LOCKKEEPER_MIGRATION_EXPORT MigrationState {
  std::uint64_t version = 0;          ///< Grows with each change of the rules; 0: nobody has written any.
  Rules current{Phase::both};         ///< Each lock that lives is in this phase or in `both`.
  Rules target{Phase::both};          ///< What all members are on the way to.
  std::chrono::milliseconds since{};  ///< The last change.
  std::vector<Member> members;
  std::vector<std::string> departed;     ///< Labels of members that have left a short while ago.
  std::vector<std::string> departedIds;  ///< Their ids.
  std::vector<std::string> recordNames;  ///< Of all records, as they stand in the store.
  std::optional<Sighting> sighting;      ///< The last one, of any key.
  std::optional<Sighting> inTheWay;      ///< The last one of a key on its way to modern.
  std::optional<std::string> rulesText;  ///< As it stands in the store.
  std::uint64_t rulesStamp = 0;          ///< SharedRecord::stamp.
  std::string watcher;  ///< The id of the member that watches for all, see docs/adr/0074; or empty.
  std::uint64_t watcherStamp = 0;  ///< SharedRecord::stamp; 0: there is no record of a watcher.
  std::optional<ScanPlace> scan;   ///< Empty unless somebody has stopped in the middle a short while ago.

  /// Whether a member has this label, or one that has left so lately that its locks were seen as a member's.
  bool knows(std::string_view label) const;
};

/// Where the processes of a migration keep its state: records in a table of a store. Each call is one
/// attempt; errors are LockDriver's, and ProtocolError for records that are not ours. Thread-safe.
class LOCKKEEPER_MIGRATION_EXPORT StateStore {
 public:
  /// `name` is that of MigrationOptions.
  StateStore(std::shared_ptr<SharedRecords> records, std::string name);

  /// Writes the member's record and reads the rules and the watcher, in one step that costs the same however
  /// many members there are. `known` is what the member's last heartbeat has left there, and is brought up to
  /// date: rules that have not changed are not sent again. Its other parts stay empty.
  void heartbeat(const Member& self, MigrationState& known, Instant deadline);
  /// Reads all of the state and changes nothing. Takes the time of a look at each member's record.
  MigrationState read(Instant deadline);

  /// Makes the member with this id the watcher until `keep` has passed, whoever it was before; an empty id:
  /// nobody.
  void watch(std::string_view id, std::chrono::milliseconds keep, Instant deadline);
  /// Writes down how far the watcher has looked through the old store, for the next one, until `keep` has
  /// passed.
  void scanned(const ScanPlace& place, std::chrono::milliseconds keep, Instant deadline);

  /// Writes the next version if the rules are still those of `seen`; false when they are not.
  bool change(const MigrationState& seen, std::uint64_t version, const Rules& current, const Rules& target,
              Instant deadline);
  /// Makes the target of `seen` the current rules, as the next version, if the rules are still those of
  /// `seen`, no other members than its own have joined and nobody has been seen in the way since; false
  /// otherwise.
  bool commit(const MigrationState& seen, Instant deadline);

  /// Records that somebody who is no member holds `key`; `inTheWay`: the key is on its way to modern.
  void sighted(std::string_view key, bool inTheWay, Instant deadline);
  /// Makes the member one that has left. Its labels stay known for one of its leases: by then, whoever has
  /// seen one of its locks has looked whose it was.
  void leave(const Member& self, Instant deadline);

 private:
  const std::shared_ptr<SharedRecords> records_;
  const std::string name_;
};

/// Whether `to` takes some key away from the old store that `from` leaves there, so that outsiders must be
/// looked for first. Where rules overlap in part, it says so even if there is no such key.
LOCKKEEPER_MIGRATION_EXPORT bool keysLeaveOldStore(const Rules& from, const Rules& to);

/// Something that keeps the target from becoming the current rules.
struct Blocker {
  std::string what;
  std::optional<std::chrono::milliseconds> left;  ///< After this time it ends by itself; empty: it does not.
};

/// Why the target may not become the current rules yet; empty when it may. `observation` is how long no
/// legacy holder must have been seen before keys become modern. Goes by the ages in `state`: those of the
/// store's clock are an estimate, since the member that takes the step measures on its own clock.
LOCKKEEPER_MIGRATION_EXPORT std::vector<Blocker> blockersOf(const MigrationState& state,
                                                            std::chrono::milliseconds observation);

}  // namespace lockkeeper::migration
