#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

#include "prometheus_text.h"
#include "text/printable.h"

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

TEST(Printable, IsOneLineOfAsciiThatTellsBytesApart) {
  EXPECT_EQ(printable("plain {text}", 64), "plain {text}");
  EXPECT_EQ(printable(std::string("a\n\0\x7f\xc3\xa4", 6), 64), "a\\x0a\\x00\\x7f\\xc3\\xa4");
  EXPECT_NE(printable("\n", 64), printable("\\x0a", 64));
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

}  // namespace
}  // namespace lockkeeper::poco
