#include "lockkeeper/rate_policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"

namespace lockkeeper {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t mostUnits = 1'000'000'000;
constexpr std::int64_t mostLogged = 1000;
constexpr std::int64_t mostProcesses = 10'000;
constexpr microseconds longestPeriod = std::chrono::days{366};
// The present time and twice this stay below 2^53 µs until 2055, once this until 2155.
constexpr microseconds longestFill = std::chrono::days{36'525};

constexpr std::array<std::pair<std::string_view, microseconds>, 7> windowUnits{
    {{"ms", milliseconds{1}},
     {"s", std::chrono::seconds{1}},
     {"m", std::chrono::minutes{1}},
     {"min", std::chrono::minutes{1}},
     {"h", std::chrono::hours{1}},
     {"d", std::chrono::days{1}},
     {"day", std::chrono::days{1}}}};

std::optional<std::int64_t> readNumber(std::string_view& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text = std::string_view(rest, end);
  return number;
}

std::optional<Rate> readRate(std::string_view text) {
  const auto count = readNumber(text);
  if (!count || !text.starts_with('/')) return std::nullopt;
  text.remove_prefix(1);
  const std::int64_t many = readNumber(text).value_or(1);
  for (const auto& [name, length] : windowUnits) {
    if (text == name && many <= longestPeriod / length) return Rate{*count, many * length};
  }
  return std::nullopt;
}

/// Names the policy in front of each complaint.
class Checker {
 public:
  explicit Checker(const std::string& name) : name_(name) {}

  std::string what(std::string_view setting) const {
    return "limit " + quoted(name_) + ": " + std::string(setting);
  }

  [[noreturn]] void refuse(const std::string& text) const {
    throw std::invalid_argument("limit " + quoted(name_) + ": " + text);
  }

  void between(std::string_view setting, std::int64_t value, std::int64_t least, std::int64_t most) const {
    checkRange(what(setting), value, least, most);
  }

  std::int64_t number(std::string_view setting, const std::string& text) const {
    std::string_view rest = text;
    const auto value = readNumber(rest);
    if (!value || !rest.empty())
      refuse(std::string(setting) + " is " + quoted(text) + ": it must be a whole number");
    return *value;
  }

  template <class Value, std::size_t Count>
  Value word(std::string_view setting, const std::string& text,
             const std::array<std::pair<std::string_view, Value>, Count>& known) const {
    std::string names;
    for (const auto& [name, value] : known) {
      if (text == name) return value;
      names.append(names.empty() ? "" : ", ").append(name);
    }
    refuse(std::string(setting) + " is " + quoted(text) + ": it must be one of " + names);
  }

 private:
  const std::string& name_;
};

RateLaw lawOf(const RatePolicyOptions& options, std::int64_t processes) {
  const std::int64_t limit = (options.burst != 0 ? options.burst : options.rate.count) / processes;
  if (!isBucket(options.kind)) return {options.kind, limit, options.rate.period.count(), 1};
  const std::int64_t period = options.rate.period.count() * processes;
  const std::int64_t common = std::gcd(period, options.rate.count);
  return {options.kind, limit, period / common, options.rate.count / common};
}

void checkBucket(const Checker& check, const RateLaw& law) {
  const std::int64_t most = law.unitsIn({longestFill.count(), 0});
  if (law.limit <= most) return;
  check.refuse("burst is " + std::to_string(law.limit) + ": at this rate at most " + std::to_string(most) +
               " are allowed, so that a full bucket takes at most 100 years to fill");
}

void checkWindow(const Checker& check, const RatePolicyOptions& options) {
  if (options.burst != 0)
    check.refuse("burst is set, but a " + std::string(toString(options.kind)) + " has none");
  if (options.kind == RateKind::slidingWindow) {
    check.between("the rate's count for a sliding-window", options.rate.count, 1, mostLogged);
  }
}

}  // namespace

Rate Rate::parse(std::string_view what, std::string_view text) {
  if (const auto rate = readRate(text)) return *rate;
  throw ConfigError(std::string(what) + ": " + quoted(text) +
                    " is not a rate: a whole number by a time is, such as 2/s, 100/min, 1/day or 5/30s");
}

RatePolicy::RatePolicy(std::string name, const RatePolicyOptions& options)
    : name_(std::move(name)), options_(options) {
  checkName("the limit's name", name_);
  const Checker check(name_);
  check.between("the rate's count", options_.rate.count, 1, mostUnits);
  check.between("the rate's period in µs", options_.rate.period.count(), 1000, longestPeriod.count());
  if (options_.burst != 0) check.between("burst", options_.burst, 1, mostUnits);
  law_ = lawOf(options_, 1);
  if (isBucket(law_.kind)) {
    checkBucket(check, law_);
  } else {
    checkWindow(check, options_);
  }
  check.between("processes", options_.processes, 1, std::min(law_.limit, mostProcesses));
  localLaw_ = lawOf(options_, options_.processes);
}

RatePolicy RatePolicy::parse(std::string name, const std::map<std::string, std::string>& settings) try {
  static constexpr std::array<std::pair<std::string_view, RateKind>, 5> kinds{
      {{"token-bucket", RateKind::tokenBucket},
       {"leaky-meter", RateKind::tokenBucket},  // the same bucket, seen from below
       {"leaky-queue", RateKind::leakyQueue},
       {"sliding-window", RateKind::slidingWindow},
       {"fixed-window", RateKind::fixedWindow}}};
  static constexpr std::array<std::pair<std::string_view, Outage>, 3> outages{
      {{"closed", Outage::closed}, {"open", Outage::open}, {"local", Outage::local}}};
  const Checker check(name);
  if (!settings.contains("rate")) check.refuse("rate is missing, such as rate = 2/s");
  RatePolicyOptions options;
  for (const auto& [setting, text] : settings) {
    if (setting == "rate") {
      options.rate = Rate::parse(check.what(setting), text);
    } else if (setting == "kind") {
      options.kind = check.word(setting, text, kinds);
    } else if (setting == "burst") {
      options.burst = check.number(setting, text);
      check.between(setting, options.burst, 1, mostUnits);
    } else if (setting == "outage") {
      options.outage = check.word(setting, text, outages);
    } else if (setting == "processes") {
      options.processes = check.number(setting, text);
    } else if (setting == "prefetch" || setting == "prefetchIdle") {
      check.refuse("the setting " + quoted(setting) +
                   " is no longer supported: remove it, and each call is decided by the store; calls of one "
                   "process for the same key share requests by themselves");
    } else {
      check.refuse("the setting " + quoted(setting) +
                   " is unknown: rate, burst, kind, outage and processes are known");
    }
  }
  return RatePolicy(std::move(name), options);
} catch (const std::invalid_argument& error) {
  throw ConfigError(error.what());
}

}  // namespace lockkeeper
