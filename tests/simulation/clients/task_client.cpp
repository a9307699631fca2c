#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/schedule/scheduled_task.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds atLeast{300};
constexpr milliseconds longestRun{1200};
// The processes' wall clocks are not further apart.
constexpr milliseconds clockSkew{200s};

thread_local Time runCalled = 0;

std::chrono::sys_seconds wallNow() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

/// Hears which tick an instance has claimed, and why it has not run one.
class TickListener final : public Listener {
 public:
  explicit TickListener(Scene& scene) : scene_(scene) {}

  void on(const lockkeeper::Event& event) override {
    if (event.kind == EventKind::acquired && event.key.starts_with("job@")) claimed_ = event.key.substr(4);
    if (event.kind != EventKind::taskEnded || event.key != "job") return;
    scene_.scheduler.trace(
        [&] { return "tick " + claimed_ + ", " + toString(event.task) + ": " + std::string(event.text); });
    const std::string_view beginning = "the tick of ";
    constexpr std::size_t lengthOfTick = 20;
    if (event.task == TaskOutcome::missed && event.text.starts_with(beginning)) {
      scene_.ticks.excused(std::string(event.text.substr(beginning.size(), lengthOfTick)));
      // Otherwise it has to be run.
      if (event.text.find(" run ") == std::string_view::npos && scene_.judge.calm)
        scene_.judge.fail("the schedule", "has missed " + std::string(event.text));
    }
    if (event.task == TaskOutcome::stopped) scene_.ticks.excused(claimed_);
  }

  void runs() { scene_.ticks.ran(claimed_); }

 private:
  Scene& scene_;
  std::string claimed_;  // by the thread of the schedule
};

/// One instance of the service, from its beginning to its end.
class Instance {
 public:
  Instance(const ClientSetting& setting, const Chance& chance)
      : scene_(setting.scene),
        chance_(chance),
        listener_(std::make_shared<TickListener>(scene_)),
        manager_(std::make_shared<LockManager>(setting.driver, optionsOf(setting))),
        now_(manager_, {.name = "now", .atLeast = atLeast, .atMost = 2s, .ttl = 500ms},
             [this](const Lock& lock, const std::stop_token&) {
               scene_.ticks.begins(runCalled, std::chrono::nanoseconds(atLeast).count());
               work("now", lock);
             }),
        scheduled_(
            std::make_shared<ExclusiveTask>(manager_, TaskOptions{.name = "job", .atMost = 5s, .ttl = 1s},
                                            [this](const Lock& lock, const std::stop_token&) {
                                              listener_->runs();
                                              work("job", lock);
                                            }),
            Schedule::every(Ticks::period), {.clockSkew = clockSkew}),
        began_(wallNow()) {}
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() {
    scene_.ticks.passed(began_, wallNow() - 1s);
    scene_.scheduler.trace([] { return "is no instance any more"; });
  }

  void run() {
    runCalled = scene_.scheduler.now();
    const Judge::Call call = scene_.judge.callBegins();
    TaskOutcome outcome = TaskOutcome::threw;
    try {
      outcome = now_.run();
    } catch (const std::runtime_error&) {
      // What the work threw.
    }
    scene_.scheduler.trace([&] { return std::string("has called the task: ") + toString(outcome); });
    scene_.judge.callEnds(call, "the task", longestRun, 2 * (operationTimeout + ioTimeout));
  }

 private:
  ManagerOptions optionsOf(const ClientSetting& setting) {
    Environment environment = setting.environment;
    std::vector<std::shared_ptr<Listener>> listeners{listener_};
    if (environment.listener) listeners.push_back(environment.listener);
    environment.listener = std::make_shared<ListenerGroup>(listeners);
    // Ticks stay taken when their instance has gone: they are not left by one of the owners.
    return {.owner = "instance", .operationTimeout = operationTimeout, .environment = environment};
  }

  void work(const std::string& task, const Lock& lock) {
    scene_.scheduler.trace([&] { return "runs " + task; });
    const auto belief = scene_.believers.granted(task, lock, Believers::whole);
    const bool longer = chance_.happens(0.1);
    const milliseconds most = longer ? longestRun : 100ms;
    std::this_thread::sleep_for(milliseconds(chance_.upTo(static_cast<std::uint64_t>(most.count()))));
    scene_.believers.givesUp(belief);
    if (chance_.happens(0.05)) throw std::runtime_error("the task has failed");
  }

  Scene& scene_;
  Chance chance_;
  const std::shared_ptr<TickListener> listener_;
  const std::shared_ptr<LockManager> manager_;
  const ExclusiveTask now_;
  const ScheduledTask scheduled_;
  const std::chrono::sys_seconds began_;
};

class TaskClient final : public Client {
 public:
  explicit TaskClient(const ClientSetting& setting) : setting_(setting), present_(begin()) {}

  void operate(Chance chance) override {
    std::this_thread::sleep_for(milliseconds(chance.upTo(1500)));
    std::shared_ptr<Instance> present;
    {
      const std::lock_guard guard(mutex_);
      present = present_;
    }
    if (!chance.happens(0.1)) return present->run();
    // The former one ends when the other worker does not use it any more.
    const std::shared_ptr<Instance> next = begin();
    const std::lock_guard guard(mutex_);
    present_ = next;
  }

 private:
  std::shared_ptr<Instance> begin() const {
    setting_.scene.scheduler.trace([] { return "begins as a new instance"; });
    return std::make_shared<Instance>(setting_, Chance(setting_.scene.scheduler.chance()(), 0));
  }

  const ClientSetting setting_;
  std::mutex mutex_;
  std::shared_ptr<Instance> present_;
};

}  // namespace

std::unique_ptr<Client> taskClient(const ClientSetting& setting) {
  return std::make_unique<TaskClient>(setting);
}

}  // namespace lockkeeper::simulation
