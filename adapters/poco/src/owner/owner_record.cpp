#include "owner/owner_record.h"

#include <array>
#include <cstddef>

#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::poco {
namespace {

constexpr std::string_view format = "lockkeeper owner 1";

// Each with its length before it: keys are any bytes.
void add(std::string& record, std::string_view field) {
  record.append(std::to_string(field.size())).append(1, ':').append(field);
}

template <class Number>
std::string textOf(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : std::string();
}

std::optional<std::string_view> next(std::string_view& rest) {
  const auto colon = rest.find(':');
  const auto size = wholeNumber<std::size_t>(rest.substr(0, colon));
  if (colon == rest.npos || !size || *size > rest.size() - colon - 1) return std::nullopt;
  const auto field = rest.substr(colon + 1, *size);
  rest.remove_prefix(colon + 1 + *size);
  return field;
}

}  // namespace

std::string recordOf(const OwnerToken& token) {
  const Holder& grant = token.grant;
  std::optional<std::uint32_t> weight;
  std::optional<std::uint32_t> limit;
  if (grant.share) {
    weight = grant.share->weight;
    limit = grant.share->limit;
  }
  std::string record;
  add(record, format);
  add(record, token.key);
  add(record, grant.owner);
  add(record, grant.grantId);
  add(record, textOf(grant.fence));
  add(record, textOf(token.fence));
  add(record, textOf(weight));
  add(record, textOf(limit));
  return record;
}

std::optional<OwnerToken> tokenIn(std::string_view record) {
  std::array<std::string_view, 8> fields;
  for (std::string_view& field : fields) {
    const auto found = next(record);
    if (!found) return std::nullopt;
    field = *found;
  }
  if (fields[0] != format || !record.empty()) return std::nullopt;
  OwnerToken token{.key = std::string(fields[1]), .grant = {}};
  token.grant.owner = fields[2];
  token.grant.grantId = fields[3];
  token.grant.fence = wholeNumber<Fence>(fields[4]);
  token.fence = wholeNumber<Fence>(fields[5]);
  const auto weight = wholeNumber<std::uint32_t>(fields[6]);
  const auto limit = wholeNumber<std::uint32_t>(fields[7]);
  if (weight && limit) token.grant.share = Share{*weight, *limit};
  return token;
}

}  // namespace lockkeeper::poco
