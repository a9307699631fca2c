#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockkeeper::test {

/// What Prometheus makes of a text in its format 0.0.4, read strictly: what the format only recommends (HELP
/// and TYPE for each metric, each metric's lines together) is demanded.
class PrometheusText {
 public:
  using Labels = std::map<std::string, std::string>;
  struct Family {
    std::string type;
    std::string help;
    std::map<std::pair<std::string, Labels>, double> samples;  ///< By the line's name and labels.
    bool operator==(const Family&) const = default;
  };

  /// Throws std::runtime_error that shows the first line which is wrong.
  explicit PrometheusText(std::string_view text);

  const std::map<std::string, Family>& families() const { return families_; }

  /// The value of one line; throws std::runtime_error when there is none.
  double value(const std::string& name, const Labels& labels) const;

 private:
  void readComment(std::string_view line);
  void readSample(std::string_view line);
  void checkHistograms(const std::string& name, const Family& family) const;

  std::map<std::string, Family> families_;
  std::string current_;
};

}  // namespace lockkeeper::test
