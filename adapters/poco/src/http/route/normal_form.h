#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockkeeper::poco {

/// Makes one spelling out of several, step by step: "trim" (spaces around it), "lower" (ASCII letters),
/// "e164" (a telephone number: + and 2 to 15 digits, of which the first is not 0).
class NormalForm {
 public:
  /// Nothing is changed.
  NormalForm() = default;

  /// Steps with `|` between them, such as "trim | lower". Throws std::invalid_argument that names the setting
  /// `what` and what is allowed.
  static NormalForm parse(const std::string& what, const std::string& text);

  /// The normal spelling; empty when there is none, for what is no telephone number.
  std::optional<std::string> of(std::string value) const;

 private:
  enum class Step { trim, lower, e164 };

  std::vector<Step> steps_;
};

}  // namespace lockkeeper::poco
