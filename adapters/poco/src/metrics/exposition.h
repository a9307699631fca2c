#pragma once

#include <span>
#include <string>

#include "lockkeeper/poco/metric_family.h"

namespace lockkeeper::poco {

/// What expositionOf() writes, as HTTP calls it.
inline constexpr const char* expositionType = "text/plain; version=0.0.4; charset=utf-8";

/// Prometheus's text format 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
std::string expositionOf(std::span<const MetricFamily> families);

}  // namespace lockkeeper::poco
