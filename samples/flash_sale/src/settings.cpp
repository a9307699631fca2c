#include "settings.h"

#include <algorithm>
#include <array>

#include "lockkeeper/error.h"
#include "lockkeeper/store_uri.h"
#include "sample_settings.h"

namespace flash_sale {
namespace {

using lockkeeper::ConfigError;
using lockkeeper::inventory::Way;
using Poco::Util::AbstractConfiguration;

struct NamedWay {
  std::optional<Way> way;
  const char* name;
};
constexpr std::array<NamedWay, 5> ways{{{Way::fencedRow, "fencedRow"},
                                        {Way::conditionalUpdate, "conditionalUpdate"},
                                        {Way::optimistic, "optimistic"},
                                        {Way::lockedOptimistic, "lockedOptimistic"},
                                        {std::nullopt, "noLock"}}};

std::optional<Way> readWay(const AbstractConfiguration& config) {
  const std::string text = config.getString("flashSale.way", "fencedRow");
  for (const NamedWay& each : ways) {
    if (text == each.name) return each.way;
  }
  throw ConfigError("flashSale.way is " + lockkeeper::quoted(text) +
                    ": fencedRow, conditionalUpdate, optimistic, lockedOptimistic or noLock are allowed");
}

}  // namespace

const char* nameOf(std::optional<Way> way) { return std::ranges::find(ways, way, &NamedWay::way)->name; }

Settings Settings::read(const AbstractConfiguration& config) {
  const auto number = [&](const char* key, unsigned otherwise, unsigned least, unsigned most) {
    return static_cast<int>(
        samples::numberOf(config, std::string("flashSale.") + key, otherwise, least, most));
  };
  samples::refuseUnknown(config, "flashSale",
                         {"database", "stock", "orders", "customers", "processes", "port", "way"});
  return {.store = lockkeeper::StoreUri::parse(config.getString("lockkeeper.store")).display(),
          .database = config.getString("flashSale.database", ""),
          .stock = number("stock", 500, 1, 1'000'000),
          .orders = number("orders", 3000, 1, 1'000'000),
          .customers = number("customers", 16, 1, 4096),
          .processes = number("processes", 1, 1, 16),
          .port = static_cast<std::uint16_t>(number("port", 8080, 0, 65535)),
          .way = readWay(config)};
}

}  // namespace flash_sale
