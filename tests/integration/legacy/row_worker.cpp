// Writes to guarded rows, under locks: row_worker STORE FOLDER SECONDS KEYS. Prints what it sees, with the
// times of the monotonic clock in nanoseconds:
//   granted KEY <when asked> <when answered>
//   wrote <when the lock was about to be verified> accepted|refused|unproven
//   ends <when about to be released>
//   released ours|lost
//   lost <reason>, at any time: what the Listener was told

#include <cstdlib>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "fenced_row.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::int64_t nanoseconds() { return std::chrono::steady_clock::now().time_since_epoch() / 1ns; }

class Teller final : public Listener {
 public:
  template <class... Parts>
  void say(const Parts&... parts) {
    const std::lock_guard guard(mutex_);
    (std::cout << ... << parts) << std::endl;
  }
  void on(const Event& event) override {
    if (event.kind == EventKind::lost) say("lost ", toString(event.loss));
  }

 private:
  std::mutex mutex_;
};

const char* nameOf(FencedRow::Write result) {
  switch (result) {
    case FencedRow::Write::accepted:
      return "accepted";
    case FencedRow::Write::refused:
      return "refused";
    case FencedRow::Write::unproven:
      return "unproven";
  }
  return "unknown";
}

/// True when the store says, after this call began, that the lock is still ours.
bool verified(Lock& lock) {
  try {
    lock.renew();
    return true;
  } catch (const Error&) {
    return false;
  }
}

int work(const std::string& store, const std::filesystem::path& folder, std::chrono::seconds length,
         int keys) {
  StoreRegistry registry;
  redis::use(registry);
  const auto teller = std::make_shared<Teller>();
  ManagerOptions options;
  options.environment.listener = teller;
  LockManager manager(registry.open(store), options);

  std::mt19937 random(std::random_device{}());
  const auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    const std::string key = "key" + std::to_string(upTo(keys - 1));
    const auto asked = nanoseconds();
    auto lock = manager.tryLock(key, {.ttl = 2s});
    if (!lock) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5 + upTo(10)});
      continue;
    }
    teller->say("granted ", key, " ", asked, " ", nanoseconds());
    const FencedRow row(folder / key);
    const std::uint64_t claim = row.claim();
    auto result = FencedRow::Write::accepted;
    for (int writes = 3 + upTo(8); writes > 0 && result == FencedRow::Write::accepted; --writes) {
      std::this_thread::sleep_for(std::chrono::milliseconds{upTo(300)});
      auto asOf = nanoseconds();
      result = row.write(claim, [&] {
        asOf = nanoseconds();
        return verified(*lock);
      });
      teller->say("wrote ", asOf, " ", nameOf(result));
    }
    teller->say("ends ", nanoseconds());
    teller->say("released ", lock->release() == ReleaseResult::released ? "ours" : "lost");
  }
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 5) return 64;
  return lockkeeper::test::work(arguments[1], arguments[2], std::chrono::seconds{std::atoi(arguments[3])},
                                std::atoi(arguments[4]));
}
