#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "temp_folder.h"

namespace lockkeeper::test {

/// Power cuts of a server: what it has written and not synced is lost, all of it. For programs without
/// sanitizers, because a shim is preloaded, which knows write(), pwrite(), fsync() and fdatasync(). One
/// thread at a time.
class PowerLoss {
 public:
  /// What the server must find in its environment.
  std::map<std::string, std::string> environment() const {
    return {{"LD_PRELOAD", POWER_LOSS_SHIM}, {"POWER_LOSS_FILE", journal().string()}};
  }

  /// Takes back what was not synced, in all files below `folder`. The server must have been killed. Throws
  /// std::runtime_error when the server has written nothing, or a file cannot be written.
  void strike(const std::filesystem::path& folder) const;

 private:
  std::filesystem::path journal() const { return folder_ / "journal"; }

  TempFolder folder_;
};

}  // namespace lockkeeper::test
