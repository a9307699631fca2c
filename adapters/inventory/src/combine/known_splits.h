#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "database/stock_tables.h"
#include "lockkeeper/base/random.h"

namespace lockkeeper::inventory {

/// Which articles are split, as far as this service has seen. Whoever relies on what is no longer so changes
/// no row, looks, and notes it here. Thread-safe.
class KnownSplits {
 public:
  explicit KnownSplits(std::shared_ptr<Random> random) : random_(std::move(random)) {}

  /// The row that the next group takes from: one of the buckets, by chance.
  Source pick(const std::string& sku);
  bool contains(const std::string& sku);
  /// 1: it is not split.
  void note(const std::string& sku, std::int64_t buckets);

 private:
  const std::shared_ptr<Random> random_;
  std::mutex mutex_{};
  std::unordered_map<std::string, std::int64_t> buckets_{};
};

}  // namespace lockkeeper::inventory
