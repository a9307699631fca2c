#include <array>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_limiter.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

const std::array<RatePolicy, 3>& policies() {
  static const std::array<RatePolicy, 3> all{
      RatePolicy("bucket", {.kind = RateKind::tokenBucket, .rate = {7, 1s}, .burst = 4}),
      RatePolicy("sliding", {.kind = RateKind::slidingWindow, .rate = {5, 1s}}),
      RatePolicy("fixed", {.kind = RateKind::fixedWindow, .rate = {5, 1s}})};
  return all;
}

class LimitClient final : public Client {
 public:
  explicit LimitClient(const ClientSetting& setting)
      : scene_(setting.scene),
        limiter_(capability<RateDriver>(setting.driver),
                 {.operationTimeout = operationTimeout, .environment = setting.environment}) {}

  void operate(Chance chance) override {
    std::vector<std::size_t> limits{chance.upTo(2)};
    if (const std::size_t other = chance.upTo(2); chance.happens(0.3) && other != limits[0])
      limits.push_back(other);
    std::vector<RateTake> takes;
    for (const std::size_t each : limits) {
      const auto cost = static_cast<std::int64_t>(1 + chance.upTo(1));
      takes.push_back({.key = "k", .policy = &policies()[each], .cost = cost});
    }
    const RedisNode& node = *scene_.nodes.front();
    const Judge::Call call = scene_.judge.callBegins();
    const std::int64_t began = node.micros();
    const Decision decision = takes.size() > 1
                                  ? limiter_.take(takes)
                                  : takes[0].decision = limiter_.take("k", *takes[0].policy, takes[0].cost);
    const std::int64_t ended = node.micros();
    scene_.judge.callEnds(call, decision.policy, 0ms, operationTimeout + ioTimeout);
    for (std::size_t i = 0; i < takes.size(); ++i) {
      const RateTake& each = takes[i];
      const auto answer = decision.outage ? Admissions::Answer::unknown
                          : decision      ? Admissions::Answer::admitted
                                          : Admissions::Answer::refused;
      scene_.scheduler.trace([&] {
        static const char* const words[] = {"is admitted", "is refused", "does not know"};
        return std::string(words[static_cast<int>(answer)]) + ", " + std::to_string(each.cost) + " of " +
               each.policy->name() + (decision.outage ? ": " + decision.outageReason : "");
      });
      // Of several limits, those that refuse are the reason.
      if (answer != Admissions::Answer::refused || !each.decision)
        scene_.admissions.add(limits[i], {began, ended, each.cost, answer});
    }
    if (chance.happens(0.3)) std::this_thread::sleep_for(milliseconds(chance.upTo(1000)));
  }

 private:
  Scene& scene_;
  RateLimiter limiter_;
};

}  // namespace

std::vector<RateLaw> lawsOfLimits() {
  std::vector<RateLaw> laws;
  for (const RatePolicy& each : policies()) laws.push_back(each.law());
  return laws;
}

std::unique_ptr<Client> limitClient(const ClientSetting& setting) {
  return std::make_unique<LimitClient>(setting);
}

}  // namespace lockkeeper::simulation
