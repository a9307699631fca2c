#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "lockkeeper/leader_election.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// One candidate, from its beginning to its end.
class Candidacy {
 public:
  Candidacy(const ClientSetting& setting, const Chance& chance)
      : scene_(setting.scene), chance_(chance), own_(scene_.leaders.add()) {
    const auto manager =
        std::make_shared<LockManager>(setting.driver, ManagerOptions{.owner = setting.owner,
                                                                     .operationTimeout = operationTimeout,
                                                                     .environment = setting.environment});
    election_ = std::make_unique<LeaderElection>(
        manager, ElectionOptions{.name = "leader", .ttl = 1s},
        ElectionHooks{.elected = [this](const Term& term) { elected(term); },
                      .deposed = [this](const Term& term) { deposed(term); }});
    scene_.leaders.ask(own_, [this] { return election_->isLeader(); });
  }
  Candidacy(const Candidacy&) = delete;
  Candidacy& operator=(const Candidacy&) = delete;
  ~Candidacy() {
    scene_.scheduler.trace([] { return "is no candidate any more"; });
    scene_.leaders.ask(own_, nullptr);
    const Judge::Call call = scene_.judge.callBegins();
    election_ = nullptr;
    // Its manager ends, too.
    scene_.judge.callEnds(call, "the end of a candidate", callbacks, 2 * (operationTimeout + ioTimeout));
    scene_.leaders.remove(own_);
  }

  void resign(milliseconds pause) {
    const Judge::Call call = scene_.judge.callBegins();
    const bool did = election_->resign(pause);
    scene_.scheduler.trace([&] { return did ? "has resigned" : "did not lead"; });
    scene_.judge.callEnds(call, "the resignation", callbacks, operationTimeout + ioTimeout);
  }

 private:
  // Both take less than the margin together, which is what they have after a loss.
  void elected(const Term& term) {
    scene_.scheduler.trace([&] {
      return "is elected, fence " + std::to_string(static_cast<std::uint64_t>(term.fence.value_or(Fence{})));
    });
    scene_.leaders.begins(own_, term.fence);
    std::this_thread::sleep_for(milliseconds(chance_.upTo(20)));
    if (chance_.happens(0.1)) throw std::runtime_error("it cannot lead");
  }

  void deposed(const Term& term) {
    scene_.scheduler.trace([] { return "is deposed"; });
    if (!term.ended.stop_requested()) scene_.judge.fail("a term", "has not ended when it was deposed");
    std::this_thread::sleep_for(milliseconds(chance_.upTo(50)));
    scene_.leaders.ends(own_);
  }

  static constexpr milliseconds callbacks{70};

  Scene& scene_;
  Chance chance_;
  const Leaders::Token own_;
  std::unique_ptr<LeaderElection> election_;
};

class ElectionClient final : public Client {
 public:
  explicit ElectionClient(const ClientSetting& setting) : setting_(setting), present_(begin()) {}

  void operate(Chance chance) override {
    std::this_thread::sleep_for(milliseconds(chance.upTo(1000)));
    scene().leaders.look();
    const milliseconds pause(chance.upTo(1500));
    std::shared_ptr<Candidacy> present = current();
    if (chance.happens(0.3)) {
      present->resign(pause);
    } else if (chance.happens(0.15)) {
      // The former one ends when the other worker does not use it any more.
      const std::shared_ptr<Candidacy> next = begin();
      const std::lock_guard guard(mutex_);
      present_ = next;
    }
    present = nullptr;
    scene().leaders.look();
  }

  // Somebody leads in the end.
  void settle() override {
    while (scene().working > 0) std::this_thread::sleep_for(1s);
    const Time began = scene().scheduler.now();
    for (int attempt = 0; attempt < 80; ++attempt) {
      scene().leaders.look();
      if (scene().leaders.lastSeen() > began) return;
      std::this_thread::sleep_for(250ms);
    }
    scene().judge.fail("the election", "has no leader");
  }

 private:
  std::shared_ptr<Candidacy> begin() const {
    scene().scheduler.trace([] { return "begins as a new candidate"; });
    return std::make_shared<Candidacy>(setting_, Chance(scene().scheduler.chance()(), 0));
  }
  std::shared_ptr<Candidacy> current() {
    const std::lock_guard guard(mutex_);
    return present_;
  }
  Scene& scene() const { return setting_.scene; }

  const ClientSetting setting_;
  std::mutex mutex_;
  std::shared_ptr<Candidacy> present_;
};

}  // namespace

std::unique_ptr<Client> electionClient(const ClientSetting& setting) {
  return std::make_unique<ElectionClient>(setting);
}

}  // namespace lockkeeper::simulation
