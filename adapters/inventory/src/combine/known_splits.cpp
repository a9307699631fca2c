#include "combine/known_splits.h"

namespace lockkeeper::inventory {

Source KnownSplits::pick(const std::string& sku) {
  std::int64_t buckets = 0;
  {
    const std::lock_guard held(mutex_);
    const auto found = buckets_.find(sku);
    if (found == buckets_.end()) return {};
    buckets = found->second;
  }
  const auto last = static_cast<std::uint64_t>(buckets - 1);
  return {.buckets = buckets, .bucket = static_cast<std::int64_t>(random_->upTo(last))};
}

bool KnownSplits::contains(const std::string& sku) {
  const std::lock_guard held(mutex_);
  return buckets_.contains(sku);
}

void KnownSplits::note(const std::string& sku, std::int64_t buckets) {
  const std::lock_guard held(mutex_);
  if (buckets > 1) {
    buckets_[sku] = buckets;
  } else {
    buckets_.erase(sku);
  }
}

}  // namespace lockkeeper::inventory
