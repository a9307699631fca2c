#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

#include "prometheus_text.h"

namespace lockkeeper::poco {
namespace {

using test::PrometheusText;

TEST(Exposition, LooksLikeThis) {
  const MetricFamily families[] = {
      {"calls_total", "Calls.", MetricType::counter, {{{{"by", "a"}, {"of", "b"}}, 3}, {{}, 12345678901.0}}},
      {"empty", "Nothing yet.", MetricType::gauge, {}},
      {"wait_seconds",
       "Waits.",
       MetricType::histogram,
       {{{{"by", "a"}}, 0.75, {{0.00025, 0}, {0.5, 1}, {std::numeric_limits<double>::infinity(), 2}}}}},
  };
  EXPECT_EQ(expositionOf(families),
            "# HELP calls_total Calls.\n"
            "# TYPE calls_total counter\n"
            "calls_total{by=\"a\",of=\"b\"} 3\n"
            "calls_total 12345678901\n"
            "# HELP empty Nothing yet.\n"
            "# TYPE empty gauge\n"
            "# HELP wait_seconds Waits.\n"
            "# TYPE wait_seconds histogram\n"
            "wait_seconds_bucket{by=\"a\",le=\"0.00025\"} 0\n"
            "wait_seconds_bucket{by=\"a\",le=\"0.5\"} 1\n"
            "wait_seconds_bucket{by=\"a\",le=\"+Inf\"} 2\n"
            "wait_seconds_sum{by=\"a\"} 0.75\n"
            "wait_seconds_count{by=\"a\"} 2\n");
}

TEST(Exposition, NoLabelBreaksOutOfItsQuotes) {
  const std::string nasty = "a\"} 1\nb\\n\\\"";
  const MetricFamily family{"calls_total", "Calls.", MetricType::counter, {{{{"by", nasty}}, 3}}};
  EXPECT_EQ(PrometheusText(expositionOf({&family, 1})).value("calls_total", {{"by", nasty}}), 3);
}

}  // namespace
}  // namespace lockkeeper::poco
