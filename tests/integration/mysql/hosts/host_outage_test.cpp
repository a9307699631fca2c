// Several hosts in one URI, of which one is silent or stands still.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "free_port.h"
#include "lockkeeper/driver/queue.h"
#include "several_hosts.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// A host that swallows everything: nobody accepts, and no more connections fit into the queue.
class SilentHost {
 public:
  SilentHost() {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(port_);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const name = reinterpret_cast<const sockaddr*>(&own);
    EXPECT_EQ(::bind(listener_, name, sizeof own), 0);
    EXPECT_EQ(::listen(listener_, 0), 0);
    for (const int each : fillers_) static_cast<void>(::connect(each, name, sizeof own));
  }
  SilentHost(const SilentHost&) = delete;
  SilentHost& operator=(const SilentHost&) = delete;
  ~SilentHost() {
    close();
    for (const int each : fillers_) ::close(each);
  }
  std::uint16_t port() const { return port_; }
  void close() {
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  }

 private:
  static int newSocket(int flags) { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0); }

  const std::uint16_t port_ = freePort();
  int listener_ = newSocket(0);
  const std::array<int, 4> fillers_{newSocket(SOCK_NONBLOCK), newSocket(SOCK_NONBLOCK),
                                    newSocket(SOCK_NONBLOCK), newSocket(SOCK_NONBLOCK)};
};

TEST_F(SeveralHosts, ASilentOneCostsNobodyMoreThanHisOwnTime) {
  SilentHost silent;
  const std::string hosts = address(silent.port()) + "," + both();
  // More than a call may take: whoever waits for the silent one fails.
  const auto driver = open(uri("mysql+version", hosts, "&connectTimeout=60s"));
  const std::shared_ptr<void> endsItsLogIns(nullptr, [&](void*) { silent.close(); });
  std::jthread hasty([&] {
    const Instant began = now();
    EXPECT_THROW((void)driver->acquire(Claimant{}.request(in(10ms))), StoreUnavailable);
    EXPECT_LT(now(), began + schedulingSlack);
  });
  const Instant began = now();
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  EXPECT_LT(now(), began + schedulingSlack);
}

// It lets clients connect, and says nothing: the kernel answers for it.
TEST_F(SeveralHosts, ThePrimaryThatStandsStillIsLeftForTheNextOne) {
  const auto driver = open(uri("mysql+version", both(), "&connectTimeout=60s"));
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  first.pause();
  second.execute("SET GLOBAL read_only = 0");
  EXPECT_TRUE(waitUntil([&] {
    try {
      return granted(driver->acquire(Claimant{}.request(in(1500ms))));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::config) << error.what();
      return false;
    }
  }));
  first.resume();
}

// Each has a log-in of its own that hangs, and the search brings one session.
TEST_F(SeveralHosts, AllWhoWaitForThePrimaryThatStandsStillFollowTheFirstWhoFindsTheNextOne) {
  const auto driver = open(uri("mysql+version", both(), "&connectTimeout=60s&connections=16"));
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  first.pause();
  second.execute("SET GLOBAL read_only = 0");
  std::atomic<int> grants = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] {
      try {
        // One after the other, they would need 270 ms each.
        if (granted(driver->acquire(Claimant{}.request(in(3s))))) ++grants;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::config) << error.what();
      }
    });
  }
  callers.clear();
  first.resume();
  EXPECT_GE(grants, 15) << "but for the one that had the idle session";
}

TEST_F(SeveralHosts, AClaimInTheQueueOfTheFormerPrimaryIsNotLeftThereUntilItsTimeIsOver) {
  const auto driver = open(uri("mysql+getlock", both(), "&connectTimeout=60s"));
  Claimant holder;
  ASSERT_TRUE(granted(driver->acquire(holder.request())));
  Claimant waiter;
  waiter.key = holder.key;
  const auto waiting = open(uri("mysql+getlock", both(), "&connectTimeout=60s"));
  auto result = std::async(std::launch::async, [&] {
    return capability<Waitable>(*waiting)->acquireWaiting(waiter.request(), 1min, {});
  });
  EXPECT_TRUE(waitUntil([&] { return first.waitingFor(holder.key).size() == 1U; }));
  const Instant began = now();
  first.pause();
  second.execute("SET GLOBAL read_only = 0");
  EXPECT_THROW((void)result.get(), OutcomeUnknown);
  EXPECT_LT(now(), began + 30s) << "a wait of a minute";
  first.resume();
  waiter.token = Token::generate(*systemRandom());
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(waiting->acquire(waiter.request()))); });
}

// No call has the time in which a log-in is given up, and each leaves one behind.
TEST_F(SeveralHosts, CallersInAHurryFollowThePrimaryWithoutAThreadForEachCall) {
  const auto driver = open(uri("mysql+version", both(), "&connectTimeout=60s"));
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  first.pause();
  second.execute("SET GLOBAL read_only = 0");
  std::atomic<bool> found = false;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const Instant end = in(20s);
      while (!found && now() < end) {
        try {
          if (granted(driver->acquire(Claimant{}.request(in(10ms))))) found = true;
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::config) << error.what();
        }
      }
    });
  }
  std::ptrdiff_t most = 0;
  EXPECT_TRUE(waitUntil([&] {
    most = std::max(most, threads());
    return found.load();
  }));
  callers.clear();
  first.resume();
  // The callers, and for each a log-in at each server; those of the search; and some that have just ended.
  // One for each call would be many more.
  EXPECT_LE(most, before + 4 + 4 * 2 + 2 + 6);
}

}  // namespace
}  // namespace lockkeeper::test
