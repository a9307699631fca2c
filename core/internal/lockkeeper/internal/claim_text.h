#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/internal/whole_number.h"
#include "lockkeeper/permit/share.h"

namespace lockkeeper {

/// What the value of a claim says in a store that keeps it as text, except for its token.
struct ClaimText {
  std::string owner;
  std::optional<Share> share{};  ///< Empty: all of the key.
};

/// Reads "TOKEN", "TOKEN@OWNER" and, for a share, "TOKEN@OWNER@WEIGHT/LIMIT". Empty for any other value. A
/// resize may have left a holder with more permits than there are.
inline std::optional<ClaimText> claimTextIn(std::string_view value) {
  constexpr std::size_t digits = Token::size * 2;
  const std::string_view token = value.substr(0, digits);
  if (token.size() < digits || token.find_first_not_of(hexDigits) != std::string_view::npos)
    return std::nullopt;
  value.remove_prefix(digits);
  if (value.empty()) return ClaimText{};
  if (value.front() != '@') return std::nullopt;
  value.remove_prefix(1);
  const std::size_t end = value.find('@');  // no owner has one
  ClaimText text{.owner = std::string(value.substr(0, end))};
  if (end == std::string_view::npos) return text;
  const std::string_view permits = value.substr(end + 1);
  const std::size_t slash = permits.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto weight = wholeNumber<std::uint32_t>(permits.substr(0, slash));
  const auto limit = wholeNumber<std::uint32_t>(permits.substr(slash + 1));
  if (!weight || !limit || *weight < 1 || *limit < 1) return std::nullopt;
  text.share = Share{.weight = *weight, .limit = *limit};
  return text;
}

}  // namespace lockkeeper
