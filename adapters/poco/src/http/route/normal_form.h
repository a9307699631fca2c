#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockkeeper::poco {

/// Makes one spelling out of several, step by step: "trim" (spaces around it), "lower" (ASCII letters),
/// "e164" (a telephone number: + and 2 to 15 digits, of which the first is not 0). The last step may say
/// instead how keys show the value: "plain" or "hash".
class NormalForm {
 public:
  /// Nothing is changed.
  NormalForm() = default;

  /// Steps with `|` between them, such as "trim | lower". Throws std::invalid_argument that names the setting
  /// `what` and what is allowed.
  static NormalForm parse(const std::string& what, const std::string& text);

  /// The normal spelling; empty when there is none, for what is no telephone number.
  std::optional<std::string> of(std::string value) const;

  /// Whether keys have a hash in place of the value; empty if the text does not say.
  std::optional<bool> hashed() const { return hashed_; }

 private:
  enum class Step { trim, lower, e164 };

  std::vector<Step> steps_;
  std::optional<bool> hashed_;
};

}  // namespace lockkeeper::poco
