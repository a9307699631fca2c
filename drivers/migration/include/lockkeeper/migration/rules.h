#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/migration/export.h"

namespace lockkeeper::migration {

/// Which stores a lock is taken in. Neighbours exclude each other; `legacy` and `modern` do not.
enum class Phase : std::uint8_t {
  legacy,  ///< Only the old store.
  both,    ///< The old one, then the new one.
  modern,  ///< Only the new store.
};

/// "legacy", "both" or "modern".
LOCKKEEPER_MIGRATION_EXPORT const char* toString(Phase phase) noexcept;

/// One rule: some keys and their phase.
struct LOCKKEEPER_MIGRATION_EXPORT Rule {
  std::string pattern;     ///< `*` stands for any text, `?` for one byte; the whole key is matched.
  unsigned percent = 100;  ///< How many in a hundred of these keys, always the same ones.
  Phase phase = Phase::legacy;

  /// Whether the rule is about `key`, its percentage included.
  bool matches(std::string_view key) const;
  /// Whether it surely matches each key that `other` matches.
  bool covers(const Rule& other) const;
  /// "order:* = modern", "25% = both" (of all keys), "order:* 25% = both".
  std::string text() const;
};

/// Says for each key in which phase its lock is taken. The first rule that matches the key decides; if none
/// does, the phase is `legacy`. Patterns see the key as the store does, with the namespace. A value.
class LOCKKEEPER_MIGRATION_EXPORT Rules {
 public:
  /// The one phase for all keys.
  explicit Rules(Phase everywhere = Phase::legacy) : rules_{{"*", 100, everywhere}} {}

  /// Reads rules with commas between them, such as "order:* = modern, 25% = both", or the name of a phase,
  /// for all keys. Throws ConfigError that names the wrong rule and what is allowed. Patterns have no spaces,
  /// commas or '=': write '?' for them.
  static Rules parse(std::string_view text);

  /// What the rules say about `key`.
  Phase phaseOf(std::string_view key) const;

  /// The text that parse() reads back; the same for the same rules.
  std::string text() const;
  /// In the order in which they are tried.
  const std::vector<Rule>& rules() const { return rules_; }
  /// Whether some rule, or the lack of one, puts keys into `phase`.
  bool mentions(Phase phase) const;

  /// These rules with those of `changes` before them. A new rule replaces one for the same pattern, and a
  /// rule for all keys without a percentage replaces all others. Rules for single patterns are before rules
  /// for all keys.
  Rules changedBy(const Rules& changes) const;

  /// The rules that can match nothing: those with 0 %, and those whose keys are all matched by a rule before
  /// them.
  std::vector<std::string> idle() const;

  /// A key, if there is one, that would go from legacy to modern or back without being in both. It tries keys
  /// made from the patterns: it is for the operator, and the protocol does not depend on it.
  static std::optional<std::string> jump(const Rules& from, const Rules& to);

  friend bool operator==(const Rules& a, const Rules& b) { return a.text() == b.text(); }

 private:
  std::vector<Rule> rules_;
};

/// The number from 0 to 99 of a key, computed from its bytes alone: the same in every process, for ever.
/// FNV-1a, then the finalizer of MurmurHash3, since the low bits of FNV alone are not even.
LOCKKEEPER_MIGRATION_EXPORT unsigned percentileOf(std::string_view key) noexcept;

}  // namespace lockkeeper::migration
