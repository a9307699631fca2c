#pragma once

#include <cstdint>

namespace lockkeeper::test {

/// What the preloaded shim writes before each write, followed by the `count` bytes that were there, and after
/// each fsync.
struct PowerLossRecord {
  static constexpr std::int64_t synced = -1;

  std::uint64_t inode = 0;
  std::int64_t offset = 0;  ///< In the file; of an fsync, in the journal: what was written before is safe.
  std::int64_t count = 0;   ///< How many bytes were there, or `synced`.
  std::int64_t size = 0;    ///< Of the file.
};

}  // namespace lockkeeper::test
