#include "lockkeeper/permit/shared_mutex.h"

#include <optional>
#include <utility>

namespace lockkeeper {

namespace {

LockOptions with(LockOptions options, std::optional<Share> share) {
  options.share = share;
  return options;
}

}  // namespace

SharedMutex::SharedMutex(LockManager& manager, std::string key, LockOptions options)
    : whole_(manager, key, with(options, std::nullopt)),
      shared_(manager, std::move(key), with(options, readerShare)) {
  manager.requireShares();
}

std::stop_token SharedMutex::lost() const {
  std::stop_token writing = whole_.lost(Mutex::Whose::own);
  return writing.stop_possible() ? writing : shared_.lost(Mutex::Whose::own);
}

}  // namespace lockkeeper
