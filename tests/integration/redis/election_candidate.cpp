// A candidate of the election "chief" that obeys: it writes into a journal when it is elected and when it has
// stepped down. Arguments: the port of redis-server, the journal, its name. SIGUSR1: resign. SIGTERM: end.

#include <csignal>

#include "election_journal.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/leader_election.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

int stand(const std::string& port, const std::string& path, const std::string& name) {
  // Blocked in all threads: the main thread takes them one by one.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGUSR1, SIGTERM}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  StoreRegistry registry;
  redis::use(registry);
  const Journal journal(path);
  struct Lateness final : Listener {
    Lateness(const Journal& to, const std::string& line) : journal(to), late(line) {}
    void on(const Event& event) override {
      if (event.kind == EventKind::callbackLate) journal.add(late);
    }
    const Journal& journal;
    const std::string late;
  };
  ManagerOptions managerOptions;
  managerOptions.environment.listener = std::make_shared<Lateness>(journal, "late " + name + " 0 0");
  const auto manager =
      std::make_shared<LockManager>(registry.open("redis://127.0.0.1:" + port), managerOptions);
  const auto write = [&](const char* what, const Term& term) {
    journal.add(LeadershipEvent{what, name, *term.fence, systemClock()->now()}.line());
  };
  ElectionOptions options;
  options.name = "chief";
  options.ttl = electionTtl;
  options.safetyMargin = electionTtl * 3 / 10;
  LeaderElection election(manager, options,
                          {.elected = [&](const Term& term) { write("elected", term); },
                           .deposed =
                               [&](const Term& term) {
                                 // As work that takes a while to stop: half of the margin, longer than others
                                 // pause between tries.
                                 pauseUntil(*systemClock(), systemClock()->now() + electionTtl * 3 / 20);
                                 write("deposed", term);
                               }});
  for (;;) {
    int number = 0;
    sigwait(&signals, &number);
    if (number == SIGTERM) return 0;
    election.resign(electionTtl);
  }
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 4 ? lockkeeper::test::stand(arguments[1], arguments[2], arguments[3]) : 64;
}
