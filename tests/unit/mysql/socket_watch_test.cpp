#include "session/wait/socket_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;

std::array<int, 2> connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return ends;
}

class SocketWatchTest : public ::testing::Test {
 protected:
  SocketWatchTest() {
    watch_.start();
    EXPECT_TRUE(clock_->awaitWakeUpAt(Instant::max()));
  }
  ~SocketWatchTest() override {
    for (const int end : ends_) ::close(end);
  }

  const std::shared_ptr<testing::FakeClock> clock_ = std::make_shared<testing::FakeClock>();
  const Instant start_ = clock_->now();
  const std::array<int, 2> ends_ = connected();
  SocketWatch watch_{clock_};
  SocketWatch::Socket socket_{watch_, ends_[0]};
  SocketWatch::Socket other_{watch_, ends_[1]};
};

TEST_F(SocketWatchTest, ShutsDownASocketWhoseTimeIsOver) {
  const SocketWatch::Guard later(other_, start_ + 7s);
  const SocketWatch::Guard guard(socket_, start_ + 5s);
  ASSERT_TRUE(clock_->awaitWakeUpAt(start_ + 5s));
  clock_->advance(5s);
  ASSERT_TRUE(clock_->awaitWakeUpAt(start_ + 7s));
  std::byte byte{};
  EXPECT_EQ(::recv(ends_[0], &byte, 1, MSG_DONTWAIT), 0);
}

// Each call into the database client has two guards: they must not wake the thread up each time.
TEST_F(SocketWatchTest, LooksWhenAGuardAskedItToThatIsGone) {
  for (int i = 0; i < 20; ++i) const SocketWatch::Guard gone(socket_, start_ + 5s);
  EXPECT_TRUE(clock_->awaitWakeUpAt(start_ + 5s, 1s));
  clock_->advance(5s);
  ASSERT_TRUE(clock_->awaitWakeUpAt(Instant::max()));
  std::byte byte{};
  EXPECT_EQ(::recv(ends_[0], &byte, 1, MSG_DONTWAIT), -1);
}

}  // namespace
}  // namespace lockkeeper::mysql
