#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using migration::MigrationState;
using migration::Rules;

const migration::MigrationStores& storesOfMigration() {
  static const migration::MigrationStores all{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
  return all;
}

/// A process that takes locks during a migration. It begins anew now and then, as another member, and
/// sometimes an operator writes another target where it runs. What each is configured for differs.
class MigrationClient final : public Client {
 public:
  explicit MigrationClient(const ClientSetting& setting)
      : setting_(setting),
        operator_(migration::openStateStore(stores(), storesOfMigration(), setting.environment),
                  options_.name) {
    constexpr std::array phases{migration::Phase::legacy, migration::Phase::both, migration::Phase::modern};
    options_.rules = Rules(phases.at(static_cast<std::size_t>(setting.owner.back()) % phases.size()));
  }

  void operate(Chance chance) override {
    if (chance.happens(0.05)) writeTarget(chance);
    Life before;  // ends when the other worker does not use it any more
    Life present;
    {
      const std::lock_guard guard(mutex_);
      if (!life_.locks || chance.happens(0.05)) before = std::exchange(life_, begin());
      present = life_;
    }
    present.locks->operate(chance);
  }

  void settle() override {
    const Life last = std::exchange(life_, {});
    if (!last.locks) return;
    while (scene().working > 0) std::this_thread::sleep_for(1s);
    std::string rules;
    for (int attempt = 0; attempt < 60; ++attempt) {
      try {
        const MigrationState state = last.driver->state(soon());
        if (state.version > 0 && state.current == state.target) return;
        rules = "from " + state.current.text() + " to " + state.target.text();
      } catch (const Error&) {
        // The last faults are not over yet.
      }
      std::this_thread::sleep_for(1s);
    }
    scene().judge.fail("the migration", "does not go on " + rules);
  }

 private:
  struct Life {
    std::shared_ptr<migration::MigratingDriver> driver;
    std::shared_ptr<Client> locks;
  };

  Life begin() const {
    scene().scheduler.trace([] { return "begins as a new member"; });
    const auto driver = migration::open(stores(), storesOfMigration(), options_, setting_.environment);
    // Some hold a key for longer than a step waits for what nobody renews.
    return {driver,
            wholeLockClient({scene(), setting_.owner, setting_.uri, driver, setting_.environment, 6s})};
  }

  void writeTarget(Chance& chance) {
    static constexpr std::array targets{"legacy", "both", "modern", "a = modern, * = legacy",
                                        "a = legacy, * = modern"};
    const std::string target = targets.at(chance.upTo(targets.size() - 1));
    try {
      const MigrationState state = operator_.read(soon());
      const bool written =
          operator_.change(state, state.version + 1, state.current, Rules::parse(target), soon());
      scene().scheduler.trace([&] { return (written ? "writes the target " : "cannot write ") + target; });
    } catch (const Error& error) {
      scene().scheduler.trace([&] { return std::string("perhaps writes no target: ") + error.what(); });
    }
  }

  Instant soon() const { return setting_.environment.clock->now() + operationTimeout; }
  Scene& scene() const { return setting_.scene; }

  const ClientSetting setting_;
  migration::MigrationOptions options_{
      .heartbeat = 200ms, .lease = 900ms, .maxTtl = 1s, .observation = 500ms};
  migration::StateStore operator_;
  std::mutex mutex_;
  Life life_;
};

}  // namespace

std::unique_ptr<Client> migrationClient(const ClientSetting& setting) {
  return std::make_unique<MigrationClient>(setting);
}

}  // namespace lockkeeper::simulation
