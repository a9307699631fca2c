#include <array>
#include <charconv>
#include <iostream>

#include "commands.h"
#include "exit_codes.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/rate_limiter.h"

namespace lockkeeper::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::array policyOptions{"rate", "burst", "kind"};

/// Keeps why the store did not answer, for the message.
class FailureListener final : public Listener {
 public:
  void on(const Event& event) override {
    if (event.kind == EventKind::attemptFailed) message_ = event.text;
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

std::int64_t costOf(const CommandLine& line) {
  const std::string text = line.option("cost").value_or("1");
  std::int64_t cost = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, cost);
  if (error != std::errc() || rest != end || cost < 0) {
    throw UsageError("--cost is " + quoted(text) + ": it must be a whole number");
  }
  return cost;
}

RatePolicy policyOf(const CommandLine& line) {
  const std::string name = line.option("name").value_or("limit");
  auto settings = readLimit(line, name);
  const bool configured = !settings.empty();
  for (const char* const option : policyOptions) {
    if (const auto given = line.option(option)) settings[option] = *given;
  }
  if (!settings.contains("rate")) {
    throw UsageError("which limit? give --rate, or --config FILE and --name NAME");
  }
  try {
    return RatePolicy::parse(name, settings);
  } catch (const ConfigError& error) {
    if (configured) throw;
    throw UsageError(error.what());
  }
}

std::string shown(std::chrono::microseconds length) {
  return formatDuration(std::chrono::ceil<milliseconds>(length));
}

int tell(const Decision& decision) {
  if (decision.allowed) {
    std::cout << "allowed, " << decision.remaining << " left\n";
    return exitOk;
  }
  std::cout << "refused, retry after " << shown(decision.retryAfter) << "\n";
  return exitBusy;
}

}  // namespace

int limitKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const RatePolicy policy = policyOf(line);
  const std::int64_t cost = costOf(line);
  const RateWait wait{.waitFor = durationOption(line, "wait", milliseconds{0})};
  const Settings settings = readSettings(line);

  const auto failure = std::make_shared<FailureListener>();
  RateLimiterOptions options{.keyNamespace = settings.manager.keyNamespace,
                             .operationTimeout = std::chrono::seconds{5}};
  options.environment.listener = failure;
  RateLimiter limiter(openRates(settings), std::move(options));
  if (line.has("reset")) {
    limiter.reset(key, policy);
    std::cout << "forgotten\n";
    return exitOk;
  }
  if (line.has("peek")) return tell(limiter.peek(key, policy, cost));
  const Decision decision = limiter.takeOrWait(key, policy, wait, cost);
  if (decision.outage) throw Error(*decision.outage, failure->message());
  return tell(decision);
}

}  // namespace lockkeeper::cli
