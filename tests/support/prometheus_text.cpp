#include "prometheus_text.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace lockkeeper::test {
namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view digits = "0123456789";

void require(bool right, std::string_view line, const char* what) {
  if (!right) throw std::runtime_error(std::string(what) + ": " + std::string(line));
}

/// Takes a name of letters, digits and `more` from the front of `rest`.
std::string takeName(std::string_view& rest, std::string_view more, std::string_view line) {
  const std::string first = std::string(letters) + std::string(more);
  require(!rest.empty() && first.find(rest.front()) != first.npos, line, "not a name");
  const auto end = std::min(rest.find_first_not_of(first + std::string(digits)), rest.size());
  const std::string name(rest.substr(0, end));
  rest.remove_prefix(end);
  return name;
}

void take(char expected, std::string_view& rest, std::string_view line) {
  require(rest.starts_with(expected), line, "something else is expected");
  rest.remove_prefix(1);
}

std::string takeValue(std::string_view& rest, std::string_view line) {
  std::string value;
  take('"', rest, line);
  while (!rest.starts_with('"')) {
    require(!rest.empty(), line, "a label's value has no end");
    if (rest.starts_with('\\')) {
      rest.remove_prefix(1);
      require(!rest.empty() && std::string_view("\\\"n").find(rest.front()) != std::string_view::npos, line,
              "not an escape");
      value += rest.front() == 'n' ? '\n' : rest.front();
    } else {
      value += rest.front();
    }
    rest.remove_prefix(1);
  }
  take('"', rest, line);
  return value;
}

PrometheusText::Labels takeLabels(std::string_view& rest, std::string_view line) {
  PrometheusText::Labels labels;
  if (!rest.starts_with('{')) return labels;
  do {
    rest.remove_prefix(1);
    const std::string name = takeName(rest, "", line);
    take('=', rest, line);
    require(labels.emplace(name, takeValue(rest, line)).second, line, "a label comes twice");
  } while (rest.starts_with(','));
  take('}', rest, line);
  return labels;
}

double numberOf(std::string_view text, std::string_view line) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && std::isfinite(value), line,
          "not a number");
  return value;
}

}  // namespace

PrometheusText::PrometheusText(std::string_view text) {
  require(text.ends_with('\n'), text.substr(text.rfind('\n') + 1), "the last line has no end");
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    line.starts_with('#') ? readComment(line) : readSample(line);
  }
  for (const auto& [name, family] : families_) {
    require(!family.type.empty(), name, "no TYPE");
    if (family.type == "counter") require(name.ends_with("_total"), name, "a counter's name");
    if (family.type == "histogram") checkHistograms(name, family);
  }
}

void PrometheusText::readComment(std::string_view line) {
  std::string_view rest = line;
  const bool help = rest.starts_with("# HELP ");
  require(help || rest.starts_with("# TYPE "), line, "neither HELP nor TYPE");
  rest.remove_prefix(7);
  const std::string name = takeName(rest, ":", line);
  take(' ', rest, line);
  if (help) {
    require(families_.emplace(name, Family{"", std::string(rest), {}}).second, line, "a metric comes twice");
    current_ = name;
    return;
  }
  Family& family = families_[name];
  require(name == current_ && family.type.empty() && family.samples.empty(), line, "TYPE at a wrong place");
  require(rest == "counter" || rest == "gauge" || rest == "histogram", line, "not a type");
  family.type = rest;
}

void PrometheusText::readSample(std::string_view line) {
  std::string_view rest = line;
  const std::string name = takeName(rest, ":", line);
  Labels labels = takeLabels(rest, line);
  // A bound is a number, however it is written.
  if (const auto bound = labels.find("le"); bound != labels.end() && bound->second != "+Inf") {
    char text[400];
    const double number = numberOf(bound->second, line);
    bound->second.assign(text,
                         std::to_chars(text, text + sizeof(text), number, std::chars_format::fixed).ptr);
  }
  take(' ', rest, line);
  const double value = numberOf(rest, line);
  Family& family = families_[current_];
  require(name.starts_with(current_), line, "a line of another metric");
  const std::string suffix = name.substr(current_.size());
  const bool right = family.type == "histogram" ? (suffix == "_bucket" && labels.contains("le")) ||
                                                      suffix == "_sum" || suffix == "_count"
                                                : suffix.empty();
  require(right, line, "a line of another metric");
  require(family.type == "gauge" || value >= 0, line, "less than nothing");
  require(family.samples.emplace(std::pair(name, labels), value).second, line, "a series comes twice");
}

void PrometheusText::checkHistograms(const std::string& name, const Family& family) const {
  std::map<Labels, std::map<double, double>> buckets;
  for (const auto& [series, value] : family.samples) {
    if (series.first != name + "_bucket") continue;
    Labels labels = series.second;
    const double bound = numberOf(labels.extract("le").mapped(), name);
    buckets[labels][bound] = value;
  }
  for (const auto& [labels, counts] : buckets) {
    double before = 0;
    for (const auto& [bound, count] : counts) {
      require(count >= before, name, "buckets that do not add up");
      before = count;
    }
    require(std::isinf(counts.rbegin()->first), name, "no bucket without a bound");
    require(value(name + "_count", labels) == before, name, "a count that is not the last bucket's");
    static_cast<void>(value(name + "_sum", labels));
  }
  require(
      family.samples.size() == buckets.size() * (buckets.empty() ? 0 : buckets.begin()->second.size() + 2),
      name, "lines of no histogram");
}

double PrometheusText::value(const std::string& name, const Labels& labels) const {
  for (const auto& [family, content] : families_) {
    const auto found = content.samples.find({name, labels});
    if (found != content.samples.end()) return found->second;
  }
  std::string wanted = name;
  for (const auto& [label, text] : labels) wanted.append(" ").append(label).append("=").append(text);
  throw std::runtime_error("no such line: " + wanted);
}

}  // namespace lockkeeper::test
