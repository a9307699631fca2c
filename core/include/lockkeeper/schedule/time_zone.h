#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

namespace detail {
struct ZoneData;
}

/// The offsets of a time zone from UTC, for all times. A value that never changes: cheap to copy,
/// thread-safe.
class LOCKKEEPER_CORE_EXPORT TimeZone {
 public:
  /// UTC, which needs no file.
  TimeZone();

  /// `UTC`, or a zone of the tz database such as `Europe/Berlin`, read at once from /usr/share/zoneinfo
  /// (Debian's package tzdata). Later changes of that file are seen only by the next call. Throws
  /// std::invalid_argument that names the zone when there is none of that name or its file cannot be used.
  static TimeZone named(std::string_view name);

  /// From the bytes of a TZif file of version 2 or later (RFC 8536) without leap seconds, for those who have
  /// the tz database elsewhere. Throws std::invalid_argument that names the zone and the fault.
  static TimeZone fromBytes(std::string_view name, std::string_view bytes);

  /// As it was given.
  const std::string& name() const noexcept;

  /// A time during which the offset stays the same.
  struct Span {
    std::chrono::sys_seconds begin;
    std::chrono::sys_seconds end;  ///< The next span begins there.
    std::chrono::seconds offset;   ///< Local time less UTC: positive in the east.
  };

  /// The span that contains `when`. Before the first and after the last change, it extends to a time far
  /// away.
  Span spanAt(std::chrono::sys_seconds when) const;

 private:
  explicit TimeZone(std::shared_ptr<const detail::ZoneData> data) noexcept;

  std::shared_ptr<const detail::ZoneData> data_;
};

}  // namespace lockkeeper
