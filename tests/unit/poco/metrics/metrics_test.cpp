#include "lockkeeper/poco/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <latch>
#include <set>
#include <sstream>
#include <thread>

#include "prometheus_text.h"
#include "tell_everything.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using test::PrometheusText;
using Labels = PrometheusText::Labels;

class MetricsTest : public ::testing::Test {
 protected:
  double value(const std::string& name, Labels labels) const {
    labels["driver"] = "redis";
    if (name.starts_with("lock")) labels.emplace("lock", "mutex");
    return PrometheusText(metrics.text()).value("lockkeeper_" + name, labels);
  }

  Metrics metrics;
  Teller listener{metrics.listener("redis")};
};

TEST_F(MetricsTest, SaysNothingHappenedBeforeAnythingHas) {
  for (const char* outcome : {"granted", "timeout", "cancelled", "failed"}) {
    EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", outcome}}), 0);
  }
  EXPECT_EQ(value("locks_held", {}), 0);
  EXPECT_EQ(PrometheusText(Metrics().text()).families().size(), metrics.collect().size());
}

TEST_F(MetricsTest, CountsCallsForALockByWhatCameOfThem) {
  for (int i = 0; i < 3; ++i) listener.acquired("order", 1ms, 1);
  listener.timedOut("order", 1s);
  listener.timedOut("order", 1s);
  listener.gaveUp("order", ErrorCode::cancelled, 1s);
  for (int i = 0; i < 4; ++i) listener.gaveUp("order", ErrorCode::outcomeUnknown, 1s);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "granted"}}), 3);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "timeout"}}), 2);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "cancelled"}}), 1);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "failed"}}), 4);
}

TEST_F(MetricsTest, TellsTheKindsOfLocksApart) {
  const auto all = metrics.listener("redis");
  const std::vector<std::pair<std::string, std::optional<Share>>> kinds{
      {"mutex", {}}, {"shared", readerShare}, {"shared", upgradeableShare}, {"semaphore", Share{2, 5}}};
  for (const auto& [kind, share] : kinds) {
    const auto tell = [&, share = share](Event event) {
      event.share = share;
      all->on(event);
    };
    tell({.kind = EventKind::acquired});
    tell({.kind = EventKind::acquired});
    tell({.kind = EventKind::acquired});
    tell({.kind = EventKind::timedOut});
    tell({.kind = EventKind::renewed});
    tell({.kind = EventKind::released});
    tell({.kind = EventKind::lost, .loss = LossReason::notOwner});
  }
  for (const std::string kind : {"mutex", "shared", "semaphore"}) {
    const double holders = kind == "shared" ? 2 : 1;
    const auto count = [&](const std::string& name, Labels labels) {
      labels["lock"] = kind;
      return value(name, labels);
    };
    EXPECT_EQ(count("lock_acquisitions_total", {{"outcome", "granted"}}), 3 * holders) << kind;
    EXPECT_EQ(count("lock_acquisitions_total", {{"outcome", "timeout"}}), holders) << kind;
    EXPECT_EQ(count("lock_wait_seconds_count", {}), 3 * holders) << kind;
    EXPECT_EQ(count("lock_hold_seconds_count", {}), holders) << kind;
    EXPECT_EQ(count("lock_renewals_total", {{"outcome", "renewed"}}), holders) << kind;
    EXPECT_EQ(count("lock_losses_total", {{"reason", "not_owner"}}), holders) << kind;
    EXPECT_EQ(count("locks_held", {}), holders) << kind;
  }
}

TEST_F(MetricsTest, MeasuresWaitsAndHoldsInSeconds) {
  listener.acquired("order", 250us, 1);  // a bound is part of its bucket
  listener.acquired("order", 251us, 1);
  listener.acquired("order", 1h, 1);
  listener.acquired("order", -1s, 1);
  listener.released("order", 30s);
  EXPECT_EQ(value("lock_wait_seconds_bucket", {{"le", "0.00025"}}), 2);
  EXPECT_EQ(value("lock_wait_seconds_bucket", {{"le", "0.0005"}}), 3);
  EXPECT_EQ(value("lock_wait_seconds_bucket", {{"le", "300"}}), 3);
  EXPECT_EQ(value("lock_wait_seconds_bucket", {{"le", "+Inf"}}), 4);
  EXPECT_DOUBLE_EQ(value("lock_wait_seconds_sum", {}), 3600.000501);
  EXPECT_EQ(value("lock_hold_seconds_bucket", {{"le", "10"}}), 0);
  EXPECT_EQ(value("lock_hold_seconds_bucket", {{"le", "30"}}), 1);
  EXPECT_EQ(value("lock_hold_seconds_sum", {}), 30);
}

TEST_F(MetricsTest, KnowsHowManyLocksAreHeld) {
  for (int i = 0; i < 5; ++i) listener.acquired("order", 1ms, 1);
  listener.released("order", 1s);
  listener.lost("order", LossReason::maxHold);
  listener.lost("order", LossReason::leaseEnded);
  EXPECT_EQ(value("locks_held", {}), 2);
  EXPECT_EQ(value("lock_losses_total", {{"reason", "max_hold"}}), 1);
  EXPECT_EQ(value("lock_losses_total", {{"reason", "lease_ended"}}), 1);
  EXPECT_EQ(value("lock_losses_total", {{"reason", "not_owner"}}), 0);
  EXPECT_EQ(value("lock_losses_total", {{"reason", "ownership_uncertain"}}), 0);
}

TEST_F(MetricsTest, CountsRenewalsAndErrorsOfTheStore) {
  listener.renewed("order");
  listener.renewalFailed("order", ErrorCode::storeUnavailable, "", 1s);
  listener.renewalFailed("order", ErrorCode::storeUnavailable, "", 1s);
  EXPECT_EQ(value("lock_renewals_total", {{"outcome", "renewed"}}), 1);
  EXPECT_EQ(value("lock_renewals_total", {{"outcome", "failed"}}), 2);
  const std::map<std::string, ErrorCode> kinds{{"store_unavailable", ErrorCode::storeUnavailable},
                                               {"outcome_unknown", ErrorCode::outcomeUnknown},
                                               {"deadlock", ErrorCode::deadlock},
                                               {"configuration", ErrorCode::config},
                                               {"protocol", ErrorCode::protocol},
                                               {"other", ErrorCode::lockLost}};
  for (const auto& [kind, code] : kinds) {
    listener.attemptFailed("order", code, "");
    EXPECT_EQ(value("store_errors_total", {{"kind", kind}}), 1) << kind;
  }
}

TEST_F(MetricsTest, ANodeIsUpFromItsAnswerToItsFailure) {
  const Labels node{{"node", "10.0.0.1:6379"}};
  const auto upAfter = [&](NodeOutcome outcome) {
    listener.nodeAsked("redis://10.0.0.1:6379/0", outcome, 2ms);
    return value("node_up", node);
  };
  EXPECT_EQ(upAfter(NodeOutcome::unanswered), 0);
  EXPECT_EQ(upAfter(NodeOutcome::agreed), 1);
  EXPECT_EQ(upAfter(NodeOutcome::unanswered), 1);
  EXPECT_EQ(upAfter(NodeOutcome::failed), 0);
  EXPECT_EQ(upAfter(NodeOutcome::refused), 1);
  EXPECT_EQ(upAfter(NodeOutcome::leftOut), 0);
  EXPECT_EQ(value("node_requests_total", {{"node", "10.0.0.1:6379"}, {"outcome", "unanswered"}}), 2);
  for (const char* outcome : {"agreed", "refused", "failed", "left_out"}) {
    EXPECT_EQ(value("node_requests_total", {{"node", "10.0.0.1:6379"}, {"outcome", outcome}}), 1);
  }
  EXPECT_EQ(value("node_answer_seconds_count", node), 2) << "of what was no answer, the time says nothing";
}

TEST_F(MetricsTest, ANodeIsCalledByItsAddressAlone) {
  const std::map<std::string, std::string> addresses{
      {"rediss://user:secret@cache.example:6380/2", "cache.example:6380"},
      {"redis://[::1]:6379/0", "[::1]:6379"},
      {"redis+unix:///run/redis.sock", "/run/redis.sock"},
      {"10.0.0.9:1", "10.0.0.9:1"}};
  for (const auto& [name, address] : addresses) {
    listener.nodeAsked(name, NodeOutcome::agreed, 1ms);
    EXPECT_EQ(value("node_up", {{"node", address}}), 1) << name;
  }
  EXPECT_EQ(metrics.text().find("secret"), std::string::npos);
}

TEST_F(MetricsTest, CountsDecisionsByLimitAndResultAndWhoDecided) {
  const auto decide = [&](bool allowed, std::optional<ErrorCode> outage) {
    listener.decided("+49", {.allowed = allowed, .policy = "sms", .outage = outage});
  };
  const auto count = [&](const char* result, const char* by) {
    return value("rate_decisions_total", {{"policy", "sms"}, {"result", result}, {"decided_by", by}});
  };
  for (int i = 0; i < 4; ++i) decide(true, {});
  for (int i = 0; i < 3; ++i) decide(false, {});
  for (int i = 0; i < 2; ++i) decide(true, ErrorCode::storeUnavailable);
  decide(false, ErrorCode::outcomeUnknown);
  EXPECT_EQ(count("allowed", "store"), 4);
  EXPECT_EQ(count("refused", "store"), 3);
  EXPECT_EQ(count("allowed", "outage"), 2);
  EXPECT_EQ(count("refused", "outage"), 1);
}

TEST_F(MetricsTest, KnowsHowTasksEndedWhenTheyLastSucceededAndWhenTheyComeNext) {
  const auto now = [] {
    const auto since1970 = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(std::chrono::floor<std::chrono::milliseconds>(since1970)).count();
  };
  const double before = now();
  listener.taskEnded("report", TaskOutcome::done, "", 2s);
  listener.taskEnded("report", TaskOutcome::skipped, "", 1h);
  listener.taskEnded("report", TaskOutcome::threw, "no paper", 3s);
  listener.taskEnded("other", TaskOutcome::storeFailed, "", 1s);
  listener.taskPlanned("report", 1h);
  const double after = now();
  EXPECT_EQ(value("task_runs_total", {{"task", "report"}, {"outcome", "done"}}), 1);
  EXPECT_EQ(value("task_runs_total", {{"task", "report"}, {"outcome", "skipped"}}), 1);
  EXPECT_EQ(value("task_runs_total", {{"task", "report"}, {"outcome", "threw"}}), 1);
  EXPECT_EQ(value("task_runs_total", {{"task", "other"}, {"outcome", "store_failed"}}), 1);
  EXPECT_EQ(value("task_run_seconds_count", {{"task", "report"}}), 2);
  EXPECT_EQ(value("task_run_seconds_sum", {{"task", "report"}}), 5);
  const double last = value("task_last_success_timestamp_seconds", {{"task", "report"}});
  const double next = value("task_next_run_timestamp_seconds", {{"task", "report"}});
  EXPECT_TRUE(before <= last && last <= after) << last;
  EXPECT_TRUE(before + 3600 <= next && next <= after + 3600) << next;
  EXPECT_THROW(value("task_last_success_timestamp_seconds", {{"task", "other"}}), std::runtime_error);
}

TEST_F(MetricsTest, HasNoNextRunOfATaskThatHasEnded) {
  listener.taskPlanned("report", 1h);
  listener.taskPlanned("other", 1h);
  listener.other(EventKind::scheduleEnded, "report", "");
  EXPECT_THROW(value("task_next_run_timestamp_seconds", {{"task", "report"}}), std::runtime_error);
  EXPECT_GT(value("task_next_run_timestamp_seconds", {{"task", "other"}}), 0);
}

TEST_F(MetricsTest, KnowsHowLongCallersWaitForALimit) {
  const Decision allowed{.allowed = true, .policy = "sms", .outage = {}};
  listener.decided("+49", allowed, 40ms);
  listener.decided("+49", allowed, 2s);
  listener.decided("+49", allowed);  // take() does not wait
  EXPECT_EQ(value("rate_wait_seconds_count", {{"policy", "sms"}}), 2);
  EXPECT_DOUBLE_EQ(value("rate_wait_seconds_sum", {{"policy", "sms"}}), 2.04);
  EXPECT_EQ(value("rate_wait_seconds_bucket", {{"policy", "sms"}, {"le", "0.05"}}), 1);
}

TEST_F(MetricsTest, KnowsWhetherThisProcessLeads) {
  listener.other(EventKind::termBegan, "chief", "");
  EXPECT_EQ(value("leader", {{"election", "chief"}}), 1);
  listener.other(EventKind::termEnded, "chief", "");
  EXPECT_EQ(value("leader", {{"election", "chief"}}), 0);
  listener.other(EventKind::termBegan, "chief", "");
  EXPECT_EQ(value("leader", {{"election", "chief"}}), 1);
  EXPECT_EQ(value("leader_terms_total", {{"election", "chief"}}), 2);
}

TEST_F(MetricsTest, CountsHowCachedValuesWereServed) {
  int times = 0;
  for (const EventKind kind : {EventKind::cacheHit, EventKind::cacheStale, EventKind::cacheLoaded,
                               EventKind::loadFailed, EventKind::notStored}) {
    ++times;
    for (int i = 0; i < times; ++i) listener.other(kind, "users:1", "");
  }
  times = 0;
  for (const char* result : {"hit", "stale", "loaded", "load_failed", "not_stored"}) {
    EXPECT_EQ(value("cache_reads_total", {{"result", result}}), ++times) << result;
  }
}

TEST_F(MetricsTest, ShowsThePhasesThatTheRulesOfAMigrationName) {
  const auto phases = [&](const char* rules) {
    listener.other(EventKind::phaseChanged, "shop", rules);
    std::string named;
    for (const char* phase : {"legacy", "both", "modern"}) {
      if (value("migration_phase", {{"migration", "shop"}, {"phase", phase}}) == 1) named += phase[0];
    }
    return named;
  };
  EXPECT_EQ(phases("legacy"), "l");
  EXPECT_EQ(phases("new:* = modern, * = both"), "bm");
  EXPECT_EQ(phases("modern"), "m");
}

TEST_F(MetricsTest, CountsRefusedRequestsByRouteAndStatus) {
  listener.requestRefused("buy", 423);
  listener.requestRefused("buy", 423);
  listener.requestRefused("buy", 429, true);
  const auto refused = [&](const char* status, const char* dry) {
    return value("http_refusals_total", {{"route", "buy"}, {"status", status}, {"dry_run", dry}});
  };
  EXPECT_EQ(refused("423", "false"), 2);
  EXPECT_EQ(refused("429", "true"), 1);
  EXPECT_THROW(refused("429", "false"), std::runtime_error);
}

TEST_F(MetricsTest, MoreLimitsThanThereIsRoomForAreCountedTogether) {
  for (int i = 0; i < 300; ++i) {
    const std::string policy = "p" + std::to_string(i);
    for (int j = 0; j < 2; ++j) listener.decided("k", {.allowed = true, .policy = policy, .outage = {}});
  }
  double all = 0;
  const PrometheusText text(metrics.text());
  const auto& samples = text.families().at("lockkeeper_rate_decisions_total").samples;
  for (const auto& [series, count] : samples) all += count;
  EXPECT_EQ(all, 600);
  EXPECT_EQ(samples.size(), 4 * 257U);
  EXPECT_EQ(
      value("rate_decisions_total", {{"policy", "(others)"}, {"result", "allowed"}, {"decided_by", "store"}}),
      88);
}

TEST_F(MetricsTest, LosesNothingOfWhatManyThreadsCount) {
  constexpr int many = 20;
  constexpr int rounds = 5'000;
  std::latch start(many);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < many; ++thread) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < rounds; ++i) {
        listener.acquired("order", 1ms, 1);
        listener.decided("+49", {.allowed = true, .policy = "p" + std::to_string(i % 50), .outage = {}});
        listener.released("order", 1ms);
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(PrometheusText(metrics.text()));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "granted"}}), many * rounds);
  EXPECT_EQ(value("lock_hold_seconds_count", {}), many * rounds);
  EXPECT_EQ(value("locks_held", {}), 0);
  EXPECT_EQ(value("rate_decisions_total", {{"policy", "p7"}, {"result", "allowed"}, {"decided_by", "store"}}),
            many * rounds / 50);
}

TEST_F(MetricsTest, KeysAreNoLabels) {
  listener.everything();
  EXPECT_EQ(metrics.text().find("\"order"), std::string::npos);
  EXPECT_EQ(metrics.text().find("+49"), std::string::npos);
}

TEST_F(MetricsTest, StoresAreCountedApartAndShownTogether) {
  const Teller other{metrics.listener("mysql+version")};
  EXPECT_EQ(metrics.listener("redis"), metrics.listener("redis"));
  listener.renewed("order");
  other.renewalFailed("order", ErrorCode::storeUnavailable, "", 1s);
  const PrometheusText text(metrics.text());
  const std::string name = "lockkeeper_lock_renewals_total";
  EXPECT_EQ(text.value(name, {{"driver", "redis"}, {"lock", "mutex"}, {"outcome", "renewed"}}), 1);
  EXPECT_EQ(text.value(name, {{"driver", "redis"}, {"lock", "mutex"}, {"outcome", "failed"}}), 0);
  EXPECT_EQ(text.value(name, {{"driver", "mysql+version"}, {"lock", "mutex"}, {"outcome", "failed"}}), 1);
}

TEST_F(MetricsTest, TheListenerOutlivesTheMetrics) {
  auto gone = std::make_unique<Metrics>();
  const Teller left{gone->listener("redis")};
  gone.reset();
  left.everything();
}

TEST_F(MetricsTest, RefusesALabelThatIsNone) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a\n"), std::string(65, 'a')}) {
    EXPECT_THROW(metrics.listener(name), std::invalid_argument);
  }
}

/// The rows of the table in docs/metrics.md: `name` | type | `label`, … |
std::set<std::string> documented() {
  std::ifstream file(LOCKKEEPER_METRICS_PAGE);
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `lockkeeper_")) continue;
    std::istringstream cells(line);
    std::string name, type, labels;
    std::getline(cells.ignore(1), name, '|');
    std::getline(cells, type, '|');
    std::getline(cells, labels, '|');
    std::string row;
    for (const char c : name + type + labels) row += c == '`' || c == ',' ? "" : std::string(1, c);
    std::istringstream words(row);
    std::string joined;
    for (std::string word; words >> word;) joined += word + " ";
    rows.insert(joined);
  }
  return rows;
}

TEST_F(MetricsTest, ThePageListsEachMetricWithItsTypeAndLabels) {
  listener.everything();
  std::set<std::string> real;
  for (const MetricFamily& family : metrics.collect()) {
    const char* const types[] = {"counter", "gauge", "histogram"};
    std::string row = std::string(family.name) + " " + types[static_cast<int>(family.type)] + " ";
    ASSERT_FALSE(family.samples.empty()) << family.name;
    for (const MetricLabel& label : family.samples.front().labels) row.append(label.name).append(" ");
    real.insert(row);
  }
  EXPECT_EQ(documented(), real);
}

}  // namespace
}  // namespace lockkeeper::poco
