#include "schedule/zone_data.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace lockkeeper::detail {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_seconds;

[[noreturn]] void refuse(const char* why) { throw std::invalid_argument(std::string("its file ") + why); }

/// Takes numbers, high byte first, from the front of some bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) refuse("ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class Number>
  Number number() {
    std::uint64_t value = 0;
    for (const char byte : take(sizeof(Number))) value = value << 8 | static_cast<unsigned char>(byte);
    return static_cast<Number>(value);
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// How many entries of each kind a block has.
struct Header {
  explicit Header(Bytes& bytes) {
    if (bytes.take(4) != "TZif") refuse("is not a TZif file");
    version = bytes.take(1).front();
    bytes.take(15);
    for (auto* count : {&universal, &standard, &leapSeconds, &changes, &types, &names}) {
      *count = bytes.number<std::uint32_t>();
    }
  }

  /// The length of the block behind the header.
  std::size_t size(std::size_t timeBytes) const {
    return changes * timeBytes + changes + types * 6 + names + leapSeconds * (timeBytes + 4) + standard +
           universal;
  }

  char version;
  std::size_t universal, standard, leapSeconds, changes, types, names;
};

}  // namespace

ZoneData readZone(std::string_view name, std::string_view content) {
  Bytes bytes(content);
  const Header old(bytes);
  if (old.version < '2') refuse("is of version 1: version 2 or later is needed");
  bytes.take(old.size(4));

  const Header header(bytes);
  if (header.leapSeconds != 0) refuse("counts leap seconds: zones below right/ are not allowed");
  if (header.types == 0) refuse("names no offset");
  Bytes block(bytes.take(header.size(8)));
  std::vector<sys_seconds> times(std::min(header.changes, content.size()));
  for (sys_seconds& time : times) time = sys_seconds{seconds{block.number<std::int64_t>()}};
  const std::string_view typeOf = block.take(header.changes);
  std::vector<seconds> offsets;
  for (std::size_t type = 0; type < header.types; ++type) {
    offsets.emplace_back(block.number<std::int32_t>());
    if (std::chrono::abs(offsets.back()) > hours{26}) refuse("has an offset of more than 26 hours");
    block.take(2);
  }

  ZoneData zone{.name = std::string(name), .initial = offsets.front()};
  for (std::size_t change = 0; change < times.size(); ++change) {
    const auto type = static_cast<unsigned char>(typeOf[change]);
    if (type >= offsets.size()) refuse("names an offset that it does not have");
    if (change > 0 && times[change] <= times[change - 1]) refuse("has changes out of order");
    zone.changes.push_back({std::clamp(times[change], beginningOfTime, endOfTime), offsets[type]});
  }

  const std::string_view footer = bytes.rest();
  if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') refuse("ends too early");
  const std::string_view rule = footer.substr(1, footer.size() - 2);
  if (!rule.empty()) zone.afterwards = ZoneRule::parse(rule);
  return zone;
}

}  // namespace lockkeeper::detail
