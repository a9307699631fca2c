#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockkeeper::testing::history {

/// What a history must not contain.
enum class Rule {
  twoHolders,  ///< Two processes believed at the same time to have what only one can have.
  fence,       ///< A fence is missing, was given twice, or is not above one that was given before.
  order,       ///< Somebody who came later was served before one who was known to wait.
  lostUpdate,  ///< A write replaced a value that its writer had not seen, or a read did not see a write.
  limit,       ///< More was taken in some length of time than the policy allows.
  noAnswer,    ///< A call was answered too late, or never.
  leak,        ///< In the end, the store holds a key that nobody has.
};

/// Its name in reports.
inline const char* toString(Rule rule) noexcept {
  static constexpr std::array names{"two-holders", "fence",     "order", "lost-update",
                                    "limit",       "no-answer", "leak"};
  return names[static_cast<std::size_t>(rule)];
}

/// One place where a history breaks a rule.
struct Violation {
  Rule rule;
  std::size_t line;       ///< The record that shows it,
  std::size_t otherLine;  ///< and the one that it contradicts; 0 for none.
  std::string text;       ///< One sentence, with the bytes of keys and names as they are.
};

/// What a check has found.
class Report {
 public:
  /// Of each rule, so many are kept. All are counted.
  static constexpr std::size_t mostKept = 20;

  /// Counts a violation, and keeps it if there is room.
  void add(Rule rule, std::size_t line, std::size_t otherLine, std::string text) {
    ++count_;
    if (++countOf_[static_cast<std::size_t>(rule)] <= mostKept)
      violations_.push_back({rule, line, otherLine, std::move(text)});
  }

  /// In the order of the rules.
  const std::vector<Violation>& violations() const noexcept { return violations_; }
  /// How many there are, kept or not.
  std::size_t count() const noexcept { return count_; }
  /// How many there are of one rule.
  std::size_t count(Rule rule) const { return countOf_[static_cast<std::size_t>(rule)]; }

  /// The violations that were kept, one a line, for messages; empty when there is none.
  std::string text() const {
    std::string all;
    for (const Violation& each : violations_) {
      all += std::string(toString(each.rule)) + ", line " + std::to_string(each.line);
      if (each.otherLine != 0) all += " and line " + std::to_string(each.otherLine);
      all += ": " + each.text + "\n";
    }
    return all;
  }

 private:
  std::vector<Violation> violations_;
  std::size_t count_ = 0;
  std::array<std::size_t, 7> countOf_{};
};

}  // namespace lockkeeper::testing::history
