#include "lockkeeper/poco/owner/owner_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "wait_until.h"

namespace lockkeeper::poco {
namespace {

class OwnerPipeTest : public ::testing::Test {
 protected:
  ~OwnerPipeTest() override { ::unsetenv(OwnerPipe::variable); }

  static OwnerToken tokenOf(std::string key) {
    return {.key = std::move(key), .grant = {.owner = "host:1", .remaining = {}, .fence = 7}, .fence = 7};
  }
  static std::vector<OwnerToken> read(const std::string& value) {
    ::setenv(OwnerPipe::variable, value.c_str(), 1);
    return InheritedOwner().tokens();
  }
};

TEST_F(OwnerPipeTest, TheTokenIsReadAsItWasWrittenByWhoeverReads) {
  OwnerToken token = tokenOf(std::string("\0k:1,\n\xff", 7));
  token.grant.grantId = "0a:b";
  token.grant.share = Share{.weight = 2, .limit = 3};
  const OwnerPipe pipe(token);
  const std::string value = pipe.value();
  for (int reader = 0; reader < 3; ++reader) {
    const auto tokens = read(value);
    ASSERT_EQ(tokens.size(), 1U);
    EXPECT_EQ(tokens[0].key, token.key);
    EXPECT_EQ(tokens[0].fence, 7U);
    EXPECT_EQ(tokens[0].grant.owner, "host:1");
    EXPECT_EQ(tokens[0].grant.grantId, "0a:b");
    EXPECT_EQ(tokens[0].grant.fence, 7U);
    EXPECT_EQ(tokens[0].grant.share, token.grant.share);
    EXPECT_FALSE(tokens[0].ended.stop_requested());
  }
}

TEST_F(OwnerPipeTest, APipeThatIsClosedTellsTheEndOfItsOwnLockOnly) {
  OwnerPipe outer(tokenOf("outer"));
  ::setenv(OwnerPipe::variable, outer.value().c_str(), 1);
  const auto inner = std::make_unique<OwnerPipe>(tokenOf("inner"));
  ::setenv(OwnerPipe::variable, inner->value().c_str(), 1);
  const InheritedOwner owner;
  const auto tokens = owner.tokens();
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0].key, "outer");
  outer.close();
  EXPECT_TRUE(test::waitUntil([&] { return tokens[0].ended.stop_requested(); }));
  EXPECT_FALSE(tokens[1].ended.stop_requested());
  EXPECT_EQ(tokens[1].key, "inner");
}

TEST_F(OwnerPipeTest, WhatIsNoSuchPipeIsLeftOut) {
  EXPECT_TRUE(InheritedOwner().tokens().empty());
  const OwnerPipe pipe(tokenOf("k"));
  int other[2];
  ASSERT_EQ(::pipe2(other, O_CLOEXEC), 0);
  const std::string text = "18:lockkeeper owner 1,5";
  ASSERT_EQ(::write(other[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const std::string strange = std::to_string(other[0]) + "," + std::to_string(other[1]);
  EXPECT_EQ(read("," + strange + ",-1,x,0,1000000,99999999999," + pipe.value()).size(), 1U);
  char left[64];
  EXPECT_EQ(::read(other[0], left, sizeof left), static_cast<ssize_t>(text.size()))
      << "it is not ours to read";
  ::close(other[0]);
  ::close(other[1]);
}

TEST_F(OwnerPipeTest, AForkedChildMayEndItsCopy) {
  const OwnerPipe pipe(tokenOf("k"));
  ::setenv(OwnerPipe::variable, pipe.value().c_str(), 1);
  auto owner = std::make_unique<InheritedOwner>();
  const auto tokens = owner->tokens();
  ASSERT_EQ(tokens.size(), 1U);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    owner.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(tokens[0].ended.stop_requested());
}

TEST_F(OwnerPipeTest, IsClosedInProgramsThatNobodyGivesItTo) {
  const OwnerPipe pipe(tokenOf("k"));
  EXPECT_EQ(::fcntl(pipe.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

}  // namespace
}  // namespace lockkeeper::poco
