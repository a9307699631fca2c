#include "legacy_fixture.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Each race of the scheme, step by step: what becomes of our lock with a legacy client, and with one that
/// has the patch of the documentation.
class Races : public LegacyTest {
 protected:
  /// A legacy client that has seen the expired key and is about to act on it; goOn() lets it.
  Process paused(const std::string& method) {
    ProcessOptions options;
    options.environment = {{"PAUSED", folder / "paused"}, {"GO_ON", folder / "go on"}};
    options.standardOutput = folder / "output";
    Process process(phpLine(method, {"k"}, "PausedLock"), options);
    EXPECT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "paused"); }));
    return process;
  }
  std::string goOn(Process& process) {
    writeFile(folder / "go on", "");
    EXPECT_EQ(process.waitFor(30s), 0);
    return readFile(folder / "output");
  }

  TempFolder folder;
  LockManager manager{open()};
};

TEST_F(Races, TheLoserOfATakeOverOverwritesOurValue) {
  put("k", inSeconds(-100));
  Process loser = paused("lock");
  Lock lock = manager.lock("k");
  EXPECT_EQ(goOn(loser), "false");
  EXPECT_EQ(valueOf("k").size(), 10U);
  EXPECT_EQ(ttlOf("k"), -1) << "the phantom that the loser leaves";
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);

  put("k", inSeconds(-100));
  Lock next = manager.lock("k");
  EXPECT_EQ(php("lock", {"k"}, "PatchedLock"), "false");
  EXPECT_EQ(next.release(), ReleaseResult::released);
}

TEST_F(Races, AskingWhetherTheLockExistsDeletesOurTakeOver) {
  put("k", inSeconds(-100));
  Process asking = paused("isLockExist");
  Lock lock = manager.lock("k");
  EXPECT_EQ(goOn(asking), "false");
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);

  const std::string expired = inSeconds(-100);
  put("k", expired);
  EXPECT_EQ(php("isLockExist", {"k"}, "PatchedLock"), "false");
  EXPECT_EQ(valueOf("k"), expired);
}

TEST_F(Races, AHolderThatOverranItsTimeoutDeletesOurLock) {
  Lock lock = manager.lock("k");
  EXPECT_EQ(php("unlock", {"k"}), "1");
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);

  Lock next = manager.lock("k");
  EXPECT_EQ(php("unlock", {"k"}, "PatchedLock"), "0");
  EXPECT_EQ(next.release(), ReleaseResult::released);
}

TEST_F(Races, AKeyThatVanishesBetweenTheCommandsOfALoserComesBackAsAPhantom) {
  put("k", inSeconds(-100));
  Process loser = paused("lock");
  ASSERT_EQ(server.command({"DEL", "lock:k"}), "1");
  EXPECT_EQ(goOn(loser), "false") << "it does not have the lock";
  EXPECT_TRUE(manager.isLocked("k")) << "and yet nobody else can have it";
  EXPECT_TRUE(manager.tryLock("k", {.waitFor = 60s})) << "until it expires";
}

TEST_F(Races, APatchedClientAndWeExcludeEachOther) {
  EXPECT_EQ(php("lock", {"k", "100"}, "PatchedLock"), "true");
  EXPECT_GT(ttlOf("k"), 0);
  EXPECT_EQ(php("isLockExist", {"k"}, "PatchedLock"), "true");
  EXPECT_FALSE(manager.tryLock("k"));
  EXPECT_EQ(manager.holder("k")->owner.find("php:"), 0U);
  EXPECT_EQ(php("lock", {"k"}), "false") << "nor does it let legacy clients in";
  ASSERT_EQ(server.command({"DEL", "lock:k"}), "1");
  Lock lock = manager.lock("k");
  EXPECT_EQ(php("lock", {"k"}, "PatchedLock"), "false");
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  put("k", inSeconds(-100));
  EXPECT_EQ(php("lock", {"k"}, "PatchedLock"), "true");
  put("k", "1000000000000");
  EXPECT_EQ(php("lock", {"k"}, "PatchedLock"), "false") << "milliseconds are foreign to it as well";
}

TEST(PatchedClient, IsTheOneThatTheDocumentationShows) {
  const std::string code = readFile(std::string(LEGACY_CLIENTS) + "/patched_lock.php");
  const std::string shown = code.substr(code.find("class PatchedLock"));
  EXPECT_NE(readFile(LEGACY_PAGE).find(shown), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::test
