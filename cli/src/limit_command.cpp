#include <Poco/JSON/Object.h>

#include <array>
#include <iostream>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/json.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "lockkeeper/rate_limiter.h"
#include "shown.h"
#include "stores.h"

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
  const auto cost = wholeNumber<std::int64_t>(text);
  if (cost.value_or(-1) < 0) throw UsageError("--cost is " + quoted(text) + ": it must be a whole number");
  return *cost;
}

RatePolicy policyOf(const CommandLine& line, const Settings& settings) {
  const std::string name = line.option("name").value_or("limit");
  const auto found = settings.limits.find(name);
  const bool configured = found != settings.limits.end();
  std::map<std::string, std::string> texts;
  if (configured) texts = found->second;
  for (const char* const option : policyOptions) {
    if (const auto given = line.option(option)) texts[option] = *given;
  }
  if (!texts.contains("rate")) {
    throw UsageError("which limit? give --rate, or --config FILE and --name NAME");
  }
  try {
    return RatePolicy::parse(name, texts);
  } catch (const ConfigError& error) {
    if (configured) throw;
    throw UsageError(error.what());
  }
}

/// Longer than a server's, unless the configuration names one: nobody else waits for this process.
milliseconds operationTimeoutOf(const Settings& settings) {
  const milliseconds configured = settings.limiter.operationTimeout;
  return configured == RateLimiterOptions{}.operationTimeout ? milliseconds{5000} : configured;
}

/// Throws the store's failure where that means a refusal, unless the configuration says otherwise.
int tell(const Decision& decision, const RatePolicy& policy, const std::string& failure, bool asJson) {
  if (decision.outage) {
    if (policy.options().outage == Outage::closed) throw Error(*decision.outage, failure);
    std::cerr << "lockkeeper: warning: decided without the store, as lockkeeper.limits." << policy.name()
              << ".outage says: " << oneLine(failure) << "\n";
  }
  const milliseconds retryAfter = std::chrono::ceil<milliseconds>(decision.retryAfter);
  if (asJson) {
    Poco::JSON::Object object = newObject();
    object.set("allowed", decision.allowed);
    object.set("remaining", decision.outage ? Poco::Dynamic::Var() : Poco::Dynamic::Var(decision.remaining));
    object.set("retryAfterMs", decision.allowed ? 0 : retryAfter.count());
    printLine(object);
    return decision.allowed ? exitOk : exitBusy;
  }
  if (!decision.allowed) {
    std::cout << "refused, retry after " << shownLength(retryAfter) << "\n";
    return exitBusy;
  }
  std::cout << "allowed";
  if (!decision.outage) std::cout << ", " << decision.remaining << " left";
  std::cout << "\n";
  return exitOk;
}

}  // namespace

int limitKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const Settings settings = readSettings(line);
  const RatePolicy policy = policyOf(line, settings);
  const std::int64_t cost = costOf(line);
  const RateWait wait{.waitFor = durationOption(line, "wait", milliseconds{0})};

  const auto failure = std::make_shared<FailureListener>();
  RateLimiterOptions options{.keyNamespace = settings.manager.keyNamespace,
                             .operationTimeout = operationTimeoutOf(settings)};
  options.environment.listener = failure;
  RateLimiter limiter(openRates(settings), std::move(options));
  if (line.has("reset")) {
    limiter.reset(key, policy);
    if (line.has("json")) {
      Poco::JSON::Object object = newObject();
      object.set("forgotten", true);
      printLine(object);
    } else {
      std::cout << "forgotten\n";
    }
    return exitOk;
  }
  const Decision decision =
      line.has("peek") ? limiter.peek(key, policy, cost) : limiter.takeOrWait(key, policy, wait, cost);
  return tell(decision, policy, failure->message(), line.has("json"));
}

}  // namespace lockkeeper::cli
