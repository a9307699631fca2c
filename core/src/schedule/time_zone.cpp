#include "lockkeeper/schedule/time_zone.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "lockkeeper/error.h"
#include "schedule/zone_data.h"

namespace lockkeeper {
namespace {

using detail::OffsetChange;
using detail::ZoneData;
using std::chrono::sys_seconds;

constexpr const char* folder = "/usr/share/zoneinfo/";
constexpr std::size_t longestName = 64;
constexpr std::size_t longestFile = std::size_t{1} << 20;

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw std::invalid_argument("the time zone " + quoted(name) + " cannot be used: " + why +
                              ": UTC and the names below " + folder +
                              " (Debian's package tzdata) are allowed, such as Europe/Berlin");
}

/// Letters, digits, '_', '+' and '-', in parts between '/': so nothing outside the folder is read.
bool isName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= longestName && std::ranges::all_of(name, allowed) &&
         !name.starts_with('/') && !name.ends_with('/');
}

}  // namespace

TimeZone::TimeZone() {
  static const auto& utc =
      *new auto(std::make_shared<const ZoneData>(ZoneData{.name = "UTC", .afterwards = std::nullopt}));
  data_ = utc;
}

TimeZone::TimeZone(std::shared_ptr<const ZoneData> data) noexcept : data_(std::move(data)) {}

TimeZone TimeZone::named(std::string_view name) {
  if (name == "UTC") return {};
  if (!isName(name)) refuse(name, "it is no name");
  std::ifstream file(folder + std::string(name), std::ios::binary);
  std::string bytes(longestFile, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.empty()) refuse(name, "there is no such zone");
  return fromBytes(name, bytes);
}

TimeZone TimeZone::fromBytes(std::string_view name, std::string_view bytes) {
  try {
    return TimeZone(std::make_shared<const ZoneData>(detail::readZone(name, bytes)));
  } catch (const std::invalid_argument& fault) {
    refuse(name, fault.what());
  }
}

const std::string& TimeZone::name() const noexcept { return data_->name; }

TimeZone::Span TimeZone::spanAt(sys_seconds when) const {
  const auto& changes = data_->changes;
  const auto next = std::ranges::upper_bound(changes, when, {}, &OffsetChange::at);
  const sys_seconds begin = next == changes.begin() ? detail::beginningOfTime : std::prev(next)->at;
  const auto offset = next == changes.begin() ? data_->initial : std::prev(next)->offset;
  if (next != changes.end()) return {begin, next->at, offset};
  if (!data_->afterwards) return {begin, detail::endOfTime, offset};
  Span ruled = data_->afterwards->spanAt(when);
  ruled.begin = std::max(ruled.begin, begin);
  return ruled;
}

}  // namespace lockkeeper
