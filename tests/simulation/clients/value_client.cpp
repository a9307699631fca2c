#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "lockkeeper/cached_loader.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/value_store.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kept = 1s;
// What the store takes to keep a value, and the clocks gain.
constexpr milliseconds onItsWay = 100ms;

class ValueClient final : public Client {
 public:
  explicit ValueClient(const ClientSetting& setting)
      : scene_(setting.scene),
        chance_(scene_.scheduler.chance()(), 0),
        loader_(
            std::make_shared<redis::RedisValues>(
                redis::RedisOptions::fromUri(StoreUri::parse("redis://10.0.0.1")), setting.environment),
            std::make_shared<LockManager>(setting.driver, ManagerOptions{.owner = setting.owner,
                                                                         .operationTimeout = operationTimeout,
                                                                         .environment = setting.environment}),
            [this](std::string_view) { return load(); },
            {.freshFor = kept, .staleFor = kept, .loadFor = 1s, .lockTtl = 500ms}) {}

  void operate(Chance chance) override {
    try {
      chance.happens(0.75) ? read() : change();
    } catch (const std::exception& error) {
      scene_.scheduler.trace([&] { return std::string("gets an error: ") + error.what(); });
    }
    if (chance.happens(0.7)) std::this_thread::sleep_for(milliseconds(chance.upTo(500)));
  }

 private:
  std::optional<std::string> load() {
    const std::string value = scene_.readings.load();
    scene_.scheduler.trace([&] { return "loads " + value; });
    const bool longer = chance_.happens(0.1);
    std::this_thread::sleep_for(milliseconds(chance_.upTo(longer ? 1200 : 50)));
    scene_.readings.loaded();
    if (chance_.happens(0.05)) throw std::runtime_error("the loader has failed");
    return value;
  }

  void read() {
    const Readings::Read read = scene_.readings.begins();
    const std::string value = loader_.get("k").value();
    scene_.scheduler.trace([&] { return "is served " + value; });
    scene_.readings.served(read, value, std::chrono::nanoseconds(2 * kept + onItsWay).count());
  }

  void change() {
    const std::uint64_t version = scene_.readings.change();
    scene_.scheduler.trace([&] { return "invalidates what is before " + std::to_string(version); });
    loader_.invalidate("k");
    scene_.scheduler.trace([&] { return "has invalidated what is before " + std::to_string(version); });
    scene_.readings.invalidated(version);
  }

  Scene& scene_;
  Chance chance_;
  CachedLoader loader_;
};

}  // namespace

std::unique_ptr<Client> valueClient(const ClientSetting& setting) {
  return std::make_unique<ValueClient>(setting);
}

}  // namespace lockkeeper::simulation
