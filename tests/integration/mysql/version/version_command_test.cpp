// The `lockkeeper` command on a key that several share.

#include <array>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "process.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

class VersionCommand : public VersionTest {
 protected:
  Finished run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), LOCKKEEPER_COMMAND);
    const std::string uri = DatabaseServer::uri(store.database, store.server.port());
    ProcessOptions options;
    options.environment["LOCKKEEPER_STORE"] = "mysql+version" + uri.substr(uri.find("://"));
    return runToEnd(arguments, options);
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

TEST_P(VersionCommand, TellsOfEachHolderOfASharedKeyAndBreaksThemAll) {
  std::array<Claimant, 2> holders;
  for (Claimant& each : holders) {
    each.key = "export";
    each.share = Share{1, 3};
    ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  }
  Claimant other;
  other.key = "other";
  ASSERT_TRUE(granted(store.direct->acquire(other.request())));
  for (const std::vector<std::string>& look : {std::vector<std::string>{"show", "export"}, {"list", "exp"}}) {
    const Finished seen = run(look);
    EXPECT_EQ(count(seen.output, "1 of 3"), 2U) << seen.output << seen.errors;
    EXPECT_EQ(count(seen.output, "test:1"), 2U) << seen.output;
  }
  EXPECT_EQ(count(run({"list"}).output, "test:1"), 3U);
  const Finished full = run({"run", "--permits", "3", "export", "--", "true"});
  EXPECT_EQ(full.exitCode, 0) << full.errors;
  EXPECT_EQ(run({"run", "export", "--", "true"}).exitCode, 75) << "it wants all of the key";
  EXPECT_EQ(run({"run", "--permits", "4", "export", "--", "true"}).exitCode, 78);
  const Finished broken = run({"break", "--yes", "export"});
  EXPECT_EQ(broken.output, "export was taken from its 2 holders\n") << broken.errors;
  EXPECT_TRUE(store.isFree("export"));
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks_shares"), "0");
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionCommand, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
