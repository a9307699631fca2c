#include "lease/held_claims.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdHeldClaims : public ::testing::Test {
 protected:
  /// So many that those are forgotten whose time has come.
  void addMany(std::chrono::milliseconds length) {
    for (int i = 0; i < 1000; ++i) add("many/" + std::to_string(++last_), length);
  }
  void add(const std::string& key, std::chrono::milliseconds length) {
    held.add(key, Token{}, 7, now, length);
  }
  bool knows(const std::string& key) const { return held.createdAt(key).has_value(); }

  HeldClaims held;
  Instant now{1h};

 private:
  int last_ = 0;
};

TEST_F(EtcdHeldClaims, OneThatIsLeftToEndIsForgottenSoon) {
  add("short", 10s);
  addMany(1h);
  now += 21s;
  addMany(1h);
  EXPECT_FALSE(knows("short"));
}

TEST_F(EtcdHeldClaims, OneWhoseLeaseANewLeaderBeganAnewIsKnown) {
  add("renewed", 5s);
  now += 5s;
  held.kept("renewed", now, 10s);
  add("long", 10s);
  now += 20s;
  addMany(1h);
  EXPECT_TRUE(knows("renewed"));
  EXPECT_TRUE(knows("long"));
}

}  // namespace
}  // namespace lockkeeper::etcd
