#include "settings.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/driver/store_uri.h"
#include "lockkeeper/error.h"

namespace flash_sale {
namespace {

using lockkeeper::ConfigError;
using lockkeeper::quoted;
using lockkeeper::inventory::Way;
using Poco::Util::AbstractConfiguration;

void refuseUnknown(const AbstractConfiguration& config) {
  constexpr std::array known{"database", "stock", "orders", "customers", "port", "way"};
  AbstractConfiguration::Keys keys;
  config.keys("flashSale", keys);
  for (const auto& key : keys) {
    if (std::ranges::find(known, key) == known.end()) throw ConfigError("unknown setting flashSale." + key);
  }
}

int number(const AbstractConfiguration& config, const std::string& key, int otherwise, int least, int most) {
  if (!config.has(key)) return otherwise;
  const std::string text = config.getString(key);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw ConfigError(key + " is " + quoted(text) + ": " + std::to_string(least) + " to " +
                    std::to_string(most) + " are allowed");
}

Way readWay(const AbstractConfiguration& config) {
  const std::string text = config.getString("flashSale.way", "fencedRow");
  if (text == "fencedRow") return Way::fencedRow;
  if (text == "conditionalUpdate") return Way::conditionalUpdate;
  if (text == "optimistic") return Way::optimistic;
  if (text == "lockedOptimistic") return Way::lockedOptimistic;
  throw ConfigError("flashSale.way is " + quoted(text) +
                    ": fencedRow, conditionalUpdate, optimistic or lockedOptimistic are allowed");
}

}  // namespace

Settings Settings::read(const AbstractConfiguration& config) {
  refuseUnknown(config);
  return {.store = lockkeeper::StoreUri::parse(config.getString("lockkeeper.store")).display(),
          .database = config.getString("flashSale.database", ""),
          .stock = number(config, "flashSale.stock", 500, 1, 1'000'000),
          .orders = number(config, "flashSale.orders", 3000, 1, 1'000'000),
          .customers = number(config, "flashSale.customers", 16, 1, 256),
          .port = static_cast<std::uint16_t>(number(config, "flashSale.port", 8080, 0, 65535)),
          .way = readWay(config)};
}

}  // namespace flash_sale
