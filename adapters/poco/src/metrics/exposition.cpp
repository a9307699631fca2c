#include "metrics/exposition.h"

#include <charconv>
#include <cmath>

namespace lockkeeper::poco {
namespace {

std::string_view nameOf(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return "counter";
    case MetricType::gauge:
      return "gauge";
    case MetricType::histogram:
      return "histogram";
  }
  return "untyped";
}

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[400];  // enough for every double
  return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed).ptr};
}

void appendEscaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
}

void appendLabel(std::string& out, std::string_view name, std::string_view value) {
  out += out.back() == '{' ? "" : ",";
  out.append(name).append("=\"");
  appendEscaped(out, value);
  out += '"';
}

/// One line; `bound` is the label "le" of a bucket.
void appendLine(std::string& out, std::string_view name, std::string_view suffix, const MetricSample& sample,
                const std::string& value, const std::string& bound = "") {
  out.append(name).append(suffix);
  if (!sample.labels.empty() || !bound.empty()) {
    out += '{';
    for (const MetricLabel& each : sample.labels) appendLabel(out, each.name, each.value);
    if (!bound.empty()) appendLabel(out, "le", bound);
    out += '}';
  }
  out.append(" ").append(value).append("\n");
}

}  // namespace

std::string expositionOf(std::span<const MetricFamily> families) {
  std::string out;
  for (const MetricFamily& family : families) {
    out.append("# HELP ").append(family.name).append(" ").append(family.help).append("\n");
    out.append("# TYPE ").append(family.name).append(" ").append(nameOf(family.type)).append("\n");
    for (const MetricSample& sample : family.samples) {
      if (family.type != MetricType::histogram) {
        appendLine(out, family.name, "", sample, number(sample.value));
        continue;
      }
      for (const MetricBucket& each : sample.buckets) {
        appendLine(out, family.name, "_bucket", sample, std::to_string(each.count), number(each.upperBound));
      }
      appendLine(out, family.name, "_sum", sample, number(sample.value));
      appendLine(out, family.name, "_count", sample, std::to_string(sample.buckets.back().count));
    }
  }
  return out;
}

}  // namespace lockkeeper::poco
