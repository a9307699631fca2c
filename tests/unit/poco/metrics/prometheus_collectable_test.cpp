#include "lockkeeper/poco/prometheus_collectable.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "prometheus_text.h"
#include "tell_everything.h"

namespace lockkeeper::poco {
namespace {

using test::PrometheusText;

TEST(PrometheusCollectable, GivesTheSameMetricsAsTheText) {
  const auto metrics = std::make_shared<Metrics>();
  Teller(metrics->listener("redis")).everything();
  Teller(metrics->listener("mysql+version")).everything();
  const PrometheusCollectable collectable(metrics);
  const PrometheusText theirs(prometheus::TextSerializer().Serialize(collectable.Collect()));
  EXPECT_TRUE(theirs.families() == PrometheusText(metrics->text()).families());
}

TEST(PrometheusCollectable, LeavesOutWhatHasNoSeries) {
  EXPECT_TRUE(PrometheusCollectable(std::make_shared<Metrics>()).Collect().empty());
}

}  // namespace
}  // namespace lockkeeper::poco
