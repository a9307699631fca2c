#include "line/claim_line.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t longestPage = 256;

// Who must wait for so many permits and more looks again when these are free.
constexpr std::uint64_t beyondRoom = 64;

// Appends the claims after those in `all`, `most` at most. True: there are no more.
bool readPage(EtcdStore& store, std::string_view key, std::vector<Entry>& all,
              std::optional<std::int64_t> before, std::size_t most, Instant deadline) {
  const std::int64_t from = all.empty() ? 0 : all.back().created + 1;
  const std::string next = getAll(store.claimsOf(key), before, most, from);
  std::vector<Entry> page = store.execute({.then = {next}, .effect = Effect::none}, deadline).found[0];
  std::move(page.begin(), page.end(), std::back_inserter(all));
  return page.size() < most;
}

}  // namespace

ClaimLine::ClaimLine(std::vector<Entry> claims) {
  for (Entry& each : claims) {
    const auto text = textIn(each.value);
    const bool granted = !text || (text->share ? !text->waits : claims_.empty());
    claims_.push_back({std::move(each), text.value_or(ValueText{}), granted});
  }
}

Obstacles ClaimLine::before(const Share& share, bool ahead) const {
  Obstacles result;
  std::uint64_t taken = 0;
  for (const LineClaim& each : claims_) {
    if (ahead && !each.granted) continue;
    const std::uint64_t permits = permitsOf(each, share);
    taken += permits;
    result.claims.emplace(each.entry.key, Obstacles::Weight{each.entry.created, permits});
  }
  if (taken + share.weight > share.limit) result.needed = taken + share.weight - share.limit;
  return result;
}

std::optional<std::uint32_t> ClaimLine::otherLimit(const Share& share) const {
  for (const LineClaim& each : claims_) {
    if (!each.granted || !each.text.share) continue;
    const std::uint32_t limit = each.text.share->limit;
    return limit == share.limit ? std::nullopt : std::optional(limit);
  }
  return std::nullopt;
}

std::vector<Entry> ClaimLine::waiting() const {
  std::vector<Entry> result;
  for (const LineClaim& each : claims_) {
    if (!each.granted) result.push_back(each.entry);
  }
  return result;
}

std::size_t pageFor(const Share& share) {
  return std::min<std::size_t>(longestPage, share.limit + beyondRoom);
}

ClaimLine readOn(EtcdStore& store, std::string_view key, std::vector<Entry> page, const Share& share,
                 std::int64_t created, bool whole, Instant deadline) {
  std::size_t most = pageFor(share);
  std::vector<Entry> all = std::move(page);
  bool last = all.size() < most;
  while (true) {
    ClaimLine line(all);
    if (last || (!whole && line.before(share).needed >= beyondRoom)) return line;
    most *= 2;  // so that many claims are read by a few requests
    last = readPage(store, key, all, created - 1, most, deadline);
  }
}

ClaimLine readAll(EtcdStore& store, std::string_view key, Instant deadline) {
  std::vector<Entry> all;
  while (!readPage(store, key, all, {}, longestPage, deadline)) {
  }
  return ClaimLine(std::move(all));
}

std::uint64_t permitsOf(const LineClaim& claim, const Share& asking) {
  if (!claim.text.share) return asking.limit;
  const bool disagrees = !claim.granted && claim.text.share->limit != asking.limit;
  return disagrees ? asking.limit : claim.text.share->weight;
}

}  // namespace lockkeeper::etcd
