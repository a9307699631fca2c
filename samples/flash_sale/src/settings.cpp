#include "settings.h"

#include "lockkeeper/error.h"
#include "lockkeeper/store_uri.h"
#include "sample_settings.h"

namespace flash_sale {
namespace {

using lockkeeper::ConfigError;
using lockkeeper::quoted;
using lockkeeper::inventory::Way;
using Poco::Util::AbstractConfiguration;

Way readWay(const AbstractConfiguration& config) {
  const std::string text = config.getString("flashSale.way", "fencedRow");
  if (text == "fencedRow") return Way::fencedRow;
  if (text == "conditionalUpdate") return Way::conditionalUpdate;
  if (text == "optimistic") return Way::optimistic;
  if (text == "lockedOptimistic") return Way::lockedOptimistic;
  throw ConfigError("flashSale.way is " + lockkeeper::quoted(text) +
                    ": fencedRow, conditionalUpdate, optimistic or lockedOptimistic are allowed");
}

}  // namespace

Settings Settings::read(const AbstractConfiguration& config) {
  const auto number = [&](const char* key, unsigned otherwise, unsigned least, unsigned most) {
    return static_cast<int>(
        samples::numberOf(config, std::string("flashSale.") + key, otherwise, least, most));
  };
  samples::refuseUnknown(config, "flashSale", {"database", "stock", "orders", "customers", "port", "way"});
  return {.store = lockkeeper::StoreUri::parse(config.getString("lockkeeper.store")).display(),
          .database = config.getString("flashSale.database", ""),
          .stock = number("stock", 500, 1, 1'000'000),
          .orders = number("orders", 3000, 1, 1'000'000),
          .customers = number("customers", 16, 1, 256),
          .port = static_cast<std::uint16_t>(number("port", 8080, 0, 65535)),
          .way = readWay(config)};
}

}  // namespace flash_sale
