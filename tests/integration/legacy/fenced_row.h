#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace lockkeeper::test {

/// A row in a table, as far as a guard needs one: two numbers in a file, `claim` and `value`, changed in
/// transactions (under flock). A holder of a lock without fences claims the row before it reads, and each of
/// its writes is accepted only while nobody else has claimed the row since.
class FencedRow {
 public:
  explicit FencedRow(std::filesystem::path path);

  /// Claims the row; returns what write() must be given.
  std::uint64_t claim() const;

  enum class Write {
    accepted,
    refused,   ///< A later holder has claimed the row.
    unproven,  ///< `stillHeld` said no.
  };
  /// Adds one to the value. `stillHeld` runs inside the transaction, with the row locked: who is granted the
  /// lock after it said yes sees the row as this write leaves it.
  Write write(std::uint64_t claim, const std::function<bool()>& stillHeld) const;

  std::uint64_t value() const;

 private:
  std::filesystem::path path_;
};

}  // namespace lockkeeper::test
