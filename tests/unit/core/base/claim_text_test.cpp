#include "lockkeeper/internal/claim_text.h"

#include <string>

#include <gtest/gtest.h>

namespace lockkeeper {
namespace {

const std::string token = "0123456789abcdef0123456789abcdef";

TEST(ClaimText, NamesTheOwnerAndTheShare) {
  EXPECT_EQ(claimTextIn(token)->owner, "");
  EXPECT_EQ(claimTextIn(token + "@")->owner, "");
  EXPECT_EQ(claimTextIn(token + "@web:1")->owner, "web:1");
  EXPECT_EQ(claimTextIn(token + "@web:1")->share, std::nullopt);
  EXPECT_EQ(claimTextIn(token + "@web:1@2/5")->owner, "web:1");
  EXPECT_EQ(claimTextIn(token + "@web:1@2/5")->share, (Share{2, 5}));
  EXPECT_EQ(claimTextIn(token + "@@2/5")->share, (Share{2, 5}));
  EXPECT_EQ(claimTextIn(token + "@web:1@2/1")->share, (Share{2, 1})) << "there are fewer since a resize";
}

TEST(ClaimText, AValueOfAnyOtherFormIsForeign) {
  for (const std::string& foreign :
       {std::string(), std::string("1700000000"), token.substr(1), token + "host", token + "a@host",
        std::string(32, 'A') + "@host", std::string(32, 'g'), "@" + token,
        std::string("0b2f0c3e-8d7a-4c1b-9f2e-5a6b7c8d9e0f"), token + "@web:1@", token + "@web:1@2",
        token + "@web:1@2/5!", token + "@web:1@0/5", token + "@web:1@2/0", token + "@web:1@2/5@",
        token + "@web:1@-2/5", token + "@web:1@2/5000000000"}) {
    EXPECT_FALSE(claimTextIn(foreign)) << foreign;
  }
}

}  // namespace
}  // namespace lockkeeper
