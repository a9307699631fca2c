#include "lockkeeper/poco/lock_subsystem.h"

#include <Poco/Util/Application.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "configurations.h"

namespace lockkeeper::poco {
namespace {

/// An application whose configuration is given; runs `work` as its main().
class App final : public Poco::Util::Application {
 public:
  explicit App(const std::string& settings) {
    config().add(properties(settings), PRIO_APPLICATION);
    addSubsystem(new LockSubsystem(StoreRegistry()));
    setUnixOptions(true);
  }

  LockSubsystem& lockkeeper() { return getSubsystem<LockSubsystem>(); }

  void runWith(std::function<void()> work) {
    work_ = std::move(work);
    ASSERT_EQ(run(), EXIT_OK);
  }
  using Application::reinitialize;

 private:
  int main(const std::vector<std::string>&) override {
    work_();
    return EXIT_OK;
  }
  std::function<void()> work_;
};

const std::string sms =
    "lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\nlockkeeper.tasks.report.atMost = 1h\n";

TEST(LockSubsystem, LivesAsLongAsTheApplicationRuns) {
  Poco::AutoPtr<App> app(new App(sms));
  LockSubsystem& lockkeeper = app->lockkeeper();
  EXPECT_THROW((void)lockkeeper.locks(), std::logic_error);
  std::weak_ptr<RateLimiter> limiter;
  app->runWith([&] {
    EXPECT_TRUE(lockkeeper.locks().tryLock("k"));
    EXPECT_TRUE(lockkeeper.limits().take("k", lockkeeper.policy("sms")));
    EXPECT_EQ(lockkeeper.task("report").atMost, std::chrono::hours{1});
    EXPECT_EQ(&lockkeeper.locks(), lockkeeper.sharedLocks().get());
    limiter = lockkeeper.sharedLimits();
  });
  EXPECT_TRUE(limiter.expired());
  EXPECT_THROW((void)lockkeeper.locks(), std::logic_error);
  EXPECT_THROW((void)lockkeeper.limits(), std::logic_error);
  EXPECT_THROW((void)lockkeeper.policy("sms"), std::logic_error);
}

TEST(LockSubsystem, ALockMayOutliveIt) {
  Poco::AutoPtr<App> app(new App(sms));
  std::optional<Lock> held;
  app->runWith([&] { held = app->lockkeeper().locks().tryLock("k"); });
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(held->release(), ReleaseResult::released);
}

TEST(LockSubsystem, AReinitializationThatIsWrongLeavesItAsItWas) {
  Poco::AutoPtr<App> app(new App(sms));
  app->runWith([&] {
    app->config().setString("lockkeeper.limits.mail.rate", "2/s");
    app->reinitialize(*app);
    EXPECT_EQ(app->lockkeeper().policy("mail").limit(), 2);
    app->config().setString("lockkeeper.limits.mail.rte", "3/s");
    EXPECT_THROW(app->reinitialize(*app), ConfigError);
    EXPECT_EQ(app->lockkeeper().policy("mail").limit(), 2);
  });
}

TEST(LockSubsystem, DefinesTheOptionThatListsItsSettings) {
  Poco::AutoPtr<App> app(new App(sms));
  app->init(std::vector<std::string>{"app"});
  EXPECT_TRUE(app->options().hasOption("help-lockkeeper"));
}

}  // namespace
}  // namespace lockkeeper::poco
