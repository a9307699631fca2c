#include "lockkeeper/migration/rules.h"

#include <algorithm>
#include <array>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::migration {

namespace {

constexpr std::string_view space = " \t\r\n";
constexpr std::array phases = {Phase::legacy, Phase::both, Phase::modern};
constexpr std::size_t longestRules = 8192;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

// Whether `pattern` matches `text`, or, as text may be a pattern too, all that `text` matches. Backtracks to
// the last star only: linear for what people write, quadratic at worst.
bool globMatches(std::string_view pattern, std::string_view text, bool textIsPattern = false) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() &&
               (pattern[p] == text[t] || (pattern[p] == '?' && !(textIsPattern && text[t] == '*')))) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

void checkLength(std::size_t bytes) {
  if (bytes <= longestRules) return;
  throw ConfigError("the rules have " + std::to_string(bytes) + " bytes: at most " +
                    std::to_string(longestRules) + " are allowed");
}

Phase phaseFrom(std::string_view rule, std::string_view word) {
  for (const Phase phase : phases) {
    if (word == toString(phase)) return phase;
  }
  throw ConfigError("the rule " + quoted(rule) + " has the phase " + quoted(word) +
                    ": legacy, both and modern are allowed");
}

unsigned percentFrom(std::string_view rule, std::string_view word) {
  const auto percent = wholeNumber<unsigned>(word.substr(0, word.size() - 1));
  if (percent && *percent <= 100) return *percent;
  throw ConfigError("the rule " + quoted(rule) + " has the percentage " + quoted(word) +
                    ": 0% to 100%, in whole numbers, are allowed");
}

Rule ruleFrom(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view left = trimmed(text.substr(0, equals));
  if (equals == std::string_view::npos || left.empty()) {
    throw ConfigError("the rule " + quoted(text) +
                      " is not written KEYS = PHASE, such as 'order:* = modern' or '25% = both'");
  }
  Rule rule{"*", 100, phaseFrom(text, trimmed(text.substr(equals + 1)))};
  const auto gap = std::min(left.find_first_of(space), left.size());
  std::string_view pattern = left.substr(0, gap);
  std::string_view percent = trimmed(left.substr(gap));
  if (percent.empty() && pattern.ends_with('%')) std::swap(pattern, percent);
  if (!pattern.empty()) rule.pattern = pattern;
  if (percent.empty()) return rule;
  if (!percent.ends_with('%') || percent.find_first_of(space) != std::string_view::npos) {
    throw ConfigError("the rule " + quoted(text) + " has " + quoted(percent) +
                      " after its pattern: a percentage such as 25% is allowed");
  }
  rule.percent = percentFrom(text, percent);
  return rule;
}

}  // namespace

const char* toString(Phase phase) noexcept {
  switch (phase) {
    case Phase::legacy:
      return "legacy";
    case Phase::both:
      return "both";
    case Phase::modern:
      return "modern";
  }
  return "unknown";
}

unsigned percentileOf(std::string_view key) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : key) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return static_cast<unsigned>((hash ^ (hash >> 33U)) % 100);
}

bool Rule::matches(std::string_view key) const {
  return globMatches(pattern, key) && (percent >= 100 || percentileOf(key) < percent);
}

bool Rule::covers(const Rule& other) const {
  return globMatches(pattern, other.pattern, true) && (percent >= 100 || percent >= other.percent);
}

std::string Rule::text() const {
  std::string keys = pattern;
  if (percent < 100) {
    const std::string share = std::to_string(percent) + "%";
    keys = pattern == "*" ? share : pattern + " " + share;
  }
  return keys + " = " + toString(phase);
}

Rules Rules::parse(std::string_view text) {
  checkLength(text.size());
  Rules result;
  for (const Phase phase : phases) {
    if (trimmed(text) == toString(phase)) return Rules(phase);
  }
  result.rules_.clear();
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    result.rules_.push_back(ruleFrom(trimmed(text.substr(0, comma))));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  checkLength(result.text().size());  // others read it as it is written
  return result;
}

Phase Rules::phaseOf(std::string_view key) const {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [&](const Rule& rule) { return rule.matches(key); });
  return found == rules_.end() ? Phase::legacy : found->phase;
}

std::string Rules::text() const {
  std::string all;
  for (const Rule& rule : rules_) all.append(all.empty() ? "" : ", ").append(rule.text());
  return all;
}

bool Rules::mentions(Phase phase) const {
  const bool stated = std::any_of(rules_.begin(), rules_.end(),
                                  [&](const Rule& rule) { return rule.phase == phase && rule.percent > 0; });
  const bool all = std::any_of(rules_.begin(), rules_.end(),
                               [](const Rule& rule) { return rule.pattern == "*" && rule.percent == 100; });
  return stated || (phase == Phase::legacy && !all);
}

Rules Rules::changedBy(const Rules& changes) const {
  Rules result = *this;
  for (const Rule& change : changes.rules_) {
    if (change.pattern == "*" && change.percent == 100) {
      result.rules_ = {change};
      continue;
    }
    // A share of all keys leaves the rule for the rest of them where it is.
    std::erase_if(result.rules_, [&](const Rule& rule) {
      return rule.pattern == change.pattern && (rule.pattern != "*" || rule.percent < 100);
    });
    const auto place = change.pattern != "*"
                           ? result.rules_.begin()
                           : std::find_if(result.rules_.begin(), result.rules_.end(),
                                          [](const Rule& rule) { return rule.pattern == "*"; });
    result.rules_.insert(place, change);
  }
  checkLength(result.text().size());
  return result;
}

std::vector<std::string> Rules::idle() const {
  std::vector<std::string> found;
  for (auto rule = rules_.begin(); rule != rules_.end(); ++rule) {
    const bool covered =
        std::any_of(rules_.begin(), rule, [&](const Rule& earlier) { return earlier.covers(*rule); });
    if (rule->percent == 0 || covered) found.push_back(rule->text());
  }
  return found;
}

std::optional<std::string> Rules::jump(const Rules& from, const Rules& to) {
  for (const Rules* side : {&from, &to}) {
    for (const Rule& rule : side->rules_) {
      // So many meet each of the hundred shares about twenty times.
      const int samples = rule.pattern.find('*') == std::string::npos ? 1 : 2000;
      for (int i = 0; i < samples; ++i) {
        std::string key;
        for (const char c : rule.pattern)
          key += c == '*' ? std::to_string(i) : std::string(1, c == '?' ? '0' : c);
        const Phase before = from.phaseOf(key);
        const Phase after = to.phaseOf(key);
        if (before != after && before != Phase::both && after != Phase::both) return key;
      }
    }
  }
  return std::nullopt;
}

}  // namespace lockkeeper::migration
