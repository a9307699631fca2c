#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "limited_server.h"
#include "lockkeeper/cached_loader.h"
#include "lockkeeper/leader_election.h"
#include "lockkeeper/migration/open.h"
#include "lockkeeper/poco/metrics.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/schedule/scheduled_task.h"
#include "lockkeeper/store_registry.h"
#include "prometheus_text.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Families = std::map<std::string, PrometheusText::Family>;

/// Everything that has metrics, done once; what Prometheus would read then.
Families metricsOfARealRun() {
  poco::Metrics metrics;
  Environment environment;
  environment.listener = metrics.listener("redlock");
  RedisServer nodes[3];
  StoreRegistry stores;
  redis::use(stores);
  const auto locks =
      std::make_shared<LockManager>(stores.open(redlockUri(nodes, "restartGuard=off"), environment),
                                    ManagerOptions{.environment = environment});
  (void)locks->lock("order").release();

  const ExclusiveTask once(locks, {.name = "once", .atMost = 10s}, [](const Lock&, std::stop_token) {});
  once.run();
  const ScheduledTask hourly(
      std::make_shared<ExclusiveTask>(locks, TaskOptions{.name = "hourly", .atMost = 10s},
                                      [](const Lock&, std::stop_token) {}),
      Schedule::every(1h));
  LeaderElection election(locks, {.name = "chief"}, {});
  EXPECT_TRUE(waitUntil([&] { return election.isLeader(); }));
  CachedLoader users(std::make_shared<MemoryValues>(), locks, [](std::string_view) { return "Ann"; });
  EXPECT_EQ(users.get("7"), "Ann");

  Environment migrating;
  migrating.listener = metrics.listener("migration");
  LockManager both(
      migration::open(stores,
                      {"redis+legacy://127.0.0.1:" + std::to_string(nodes[0].port()) + "/0?keyPrefix=lock:",
                       nodes[1].uri(), ""},
                      {}, migrating),
      {.environment = migrating});
  (void)both.lock("order", {.ttl = 5s}).release();

  for (const std::string dry : {"on", "off"}) {
    const LimitedServer server("memory:",
                               "lockkeeper.limits.total.rate = 1/h\n"
                               "lockkeeper.http.routes.buy.match = * /*\n"
                               "lockkeeper.http.routes.buy.limits.total = all\n"
                               "lockkeeper.http.dryRun = " +
                                   dry + "\n",
                               {.listener = metrics.listener("memory")});
    for (int i = 0; i < 2; ++i) (void)server.get("/");
  }
  return PrometheusText(metrics.text()).families();
}

std::string textOf(const std::string& file) {
  std::ifstream stream(std::string(LOCKKEEPER_MONITORING) + "/" + file);
  std::ostringstream text;
  text << stream.rdbuf();
  EXPECT_FALSE(text.str().empty()) << file;
  return text.str();
}

/// One rule of alerts.yml.
using Rule = std::map<std::string, std::string>;

/// The rules, read strictly: each line is one of those that alerts.yml may have, in this form.
std::vector<Rule> alertRules() {
  std::vector<Rule> rules;
  std::istringstream lines(textOf("alerts.yml"));
  const std::regex head("#.*|groups:|  - name: lockkeeper|    rules:|        (labels|annotations):");
  const std::regex entry(
      "(      - |        |          )(alert|expr|for|severity|summary|description): ('[^']*'|[A-Za-z0-9]+)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, head)) continue;
    if (!std::regex_match(line, found, entry)) {
      ADD_FAILURE() << "alerts.yml: " << line;
      continue;
    }
    if (found[2] == "alert") rules.emplace_back();
    if (rules.empty()) continue;
    std::string value = found[3];
    if (value.starts_with('\'')) value = value.substr(1, value.size() - 2);
    EXPECT_TRUE(rules.back().emplace(found[2], value).second) << line;
  }
  return rules;
}

std::vector<std::string> dashboardExpressions() {
  std::vector<std::string> all;
  Poco::JSON::Parser parser;
  const auto dashboard = parser.parse(textOf("grafana-dashboard.json")).extract<Poco::JSON::Object::Ptr>();
  for (const auto& panel : *dashboard->getArray("panels")) {
    for (const auto& target : *panel.extract<Poco::JSON::Object::Ptr>()->getArray("targets")) {
      all.push_back(target.extract<Poco::JSON::Object::Ptr>()->getValue<std::string>("expr"));
    }
  }
  return all;
}

/// Checks an expression of PromQL against what there is.
class Expression {
 public:
  Expression(const Families& real, std::string text) : real_(real), text_(std::move(text)) {}

  /// Names and labels that nothing exposes, each with what is wrong.
  std::vector<std::string> faults() {
    const std::regex metric(R"((lockkeeper_[a-z_]+)(\{[^}]*\})?)");
    for (std::sregex_iterator it(text_.begin(), text_.end(), metric), end; it != end; ++it) {
      const PrometheusText::Family* family = find((*it)[1]);
      if (family == nullptr) continue;
      families_.push_back(family);
      checkSelector(*family, (*it)[2]);
    }
    if (families_.empty()) faults_.push_back("no metric: " + text_);
    const std::regex by(R"(by \(([a-z_, ]+)\))");
    for (std::sregex_iterator it(text_.begin(), text_.end(), by), end; it != end; ++it) {
      std::istringstream names((*it)[1]);
      for (std::string name; std::getline(names >> std::ws, name, ',');) {
        for (const auto* family : families_) {
          if (valuesOf(*family, name).empty()) faults_.push_back("no label " + name + ": " + text_);
        }
      }
    }
    return faults_;
  }

 private:
  const PrometheusText::Family* find(const std::string& name) {
    for (const std::string suffix : {"", "_bucket", "_sum", "_count"}) {
      if (!name.ends_with(suffix)) continue;
      const auto found = real_.find(name.substr(0, name.size() - suffix.size()));
      if (found != real_.end() && (suffix.empty() == (found->second.type != "histogram")))
        return &found->second;
    }
    faults_.push_back("no metric " + name + ": " + text_);
    return nullptr;
  }

  static std::set<std::string> valuesOf(const PrometheusText::Family& family, const std::string& label) {
    std::set<std::string> values;
    for (const auto& [series, value] : family.samples) {
      if (const auto found = series.second.find(label); found != series.second.end())
        values.insert(found->second);
    }
    return values;
  }

  void checkSelector(const PrometheusText::Family& family, const std::string& selector) {
    const std::regex matcher(R"re(([a-z_]+)(=|=~)"([^"]*)")re");
    for (std::sregex_iterator it(selector.begin(), selector.end(), matcher), end; it != end; ++it) {
      const auto values = valuesOf(family, (*it)[1]);
      if (values.empty()) faults_.push_back("no label " + (*it)[1].str() + ": " + text_);
      if ((*it)[1] == "status" || (*it)[3] == "$driver") continue;  // any number, and any store
      std::istringstream wanted((*it)[3]);
      for (std::string each; std::getline(wanted, each, '|');) {
        if (!values.contains(each)) faults_.push_back("no " + (*it)[1].str() + " " + each + ": " + text_);
      }
    }
  }

  const Families& real_;
  const std::string text_;
  std::vector<const PrometheusText::Family*> families_;
  std::vector<std::string> faults_;
};

class Monitoring : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { real = metricsOfARealRun(); }

  static inline Families real;
};

TEST_F(Monitoring, ARealRunExposesEveryMetric) {
  for (const auto& [name, family] : real) EXPECT_FALSE(family.samples.empty()) << name;
  EXPECT_EQ(real.size(), poco::Metrics().collect().size());
}

TEST_F(Monitoring, TheDashboardShowsOnlyWhatThereIsAndEveryMetric) {
  std::string all;
  for (const std::string& text : dashboardExpressions()) {
    EXPECT_EQ(Expression(real, text).faults(), std::vector<std::string>());
    all += text + "\n";
  }
  for (const auto& family : real) EXPECT_NE(all.find(family.first), std::string::npos) << family.first;
}

TEST_F(Monitoring, TheAlertsAskOnlyForWhatThereIs) {
  const auto rules = alertRules();
  EXPECT_GE(rules.size(), 15U);
  std::set<std::string> names;
  for (const Rule& rule : rules) {
    ASSERT_EQ(rule.size(), 6U) << rule.at("alert");
    EXPECT_TRUE(names.insert(rule.at("alert")).second) << rule.at("alert");
    EXPECT_EQ(Expression(real, rule.at("expr")).faults(), std::vector<std::string>());
    EXPECT_TRUE(std::regex_match(rule.at("for"), std::regex("[0-9]+[mhd]"))) << rule.at("for");
    EXPECT_TRUE(std::regex_match(rule.at("severity"), std::regex("critical|warning|info")));
    const std::regex label(R"(\$labels\.([a-z_]+))");
    const std::string summary = rule.at("summary");
    for (std::sregex_iterator it(summary.begin(), summary.end(), label), end; it != end; ++it) {
      const std::regex by("by \\([a-z_, ]*\\b" + (*it)[1].str() + "\\b");
      EXPECT_TRUE(std::regex_search(rule.at("expr"), by)) << rule.at("alert") << " keeps no " << (*it)[1];
    }
  }
}

TEST_F(Monitoring, AThresholdOfAQuantileIsTheBoundOfABucket) {
  const std::regex quantile(R"(^histogram_quantile\(.*rate\((lockkeeper_[a-z_]+)_bucket.*\) > ([0-9.]+)$)");
  int checked = 0;
  for (const Rule& rule : alertRules()) {
    std::smatch found;
    const std::string expression = rule.at("expr");
    if (!std::regex_match(expression, found, quantile)) continue;
    ++checked;
    std::set<std::string> bounds;
    for (const auto& [series, value] : real.at(found[1]).samples) {
      if (const auto le = series.second.find("le"); le != series.second.end()) bounds.insert(le->second);
    }
    EXPECT_TRUE(bounds.contains(found[2])) << expression;
  }
  EXPECT_GE(checked, 1);
}

TEST_F(Monitoring, TheChecksFindWhatIsWrong) {
  for (const char* wrong :
       {"rate(lockkeeper_lock_loss_total[5m])", "rate(lockkeeper_locks_held_bucket[5m])",
        "sum by (node) (lockkeeper_locks_held)", "lockkeeper_lock_renewals_total{outcome=\"granted\"}",
        "lockkeeper_lock_wait_seconds", "up == 0"}) {
    EXPECT_FALSE(Expression(real, wrong).faults().empty()) << wrong;
  }
}

}  // namespace
}  // namespace lockkeeper::test
