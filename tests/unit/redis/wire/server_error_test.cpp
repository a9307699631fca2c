#include "wire/protocol/server_error.h"

#include <gtest/gtest.h>

#include "error_reply.h"

namespace lockkeeper::redis {
namespace {

struct Case {
  const char* text;
  std::string_view name;
  ErrorCode code;
};

// As servers of different versions send them.
const Case cases[] = {
    {"READONLY You can't write against a read only replica.", "READONLY", ErrorCode::storeUnavailable},
    {"READONLY You can't write against a read only replica. script: 3b, on @user_script:26.", "READONLY",
     ErrorCode::storeUnavailable},
    {"ERR Error running script (call to f_3b): @user_script:26: @user_script: 26: -READONLY You can't write "
     "against a read only replica.",
     "READONLY", ErrorCode::storeUnavailable},
    {"ERR Error running script (call to f_3b): @user_script:3: @user_script: 3: -OOM command not allowed "
     "when "
     "used memory > 'maxmemory'.",
     "OOM", ErrorCode::storeUnavailable},
    {"ERR Error running script (call to f_3b): @user_script:3: WRONGTYPE Operation against a key holding the "
     "wrong kind of value",
     "WRONGTYPE", ErrorCode::config},
    {"WRONGTYPE Operation against a key holding the wrong kind of value script: 3b, on @user_script:3.",
     "WRONGTYPE", ErrorCode::config},
    {"NOPERM this user has no permissions to run the 'eval' command", "NOPERM", ErrorCode::config},
    {"ERR Error running script (call to f_3b): @user_script:3: The user executing the script can't run this "
     "command or subcommand",
     "NOPERM", ErrorCode::config},
    {"ERR The user executing the script can't run this command or subcommand script: 3b, on @user_script:3.",
     "NOPERM", ErrorCode::config},
    {"ERR ACL failure in script: User bob has no permissions to run the 'llen' command script: 3b, on "
     "@user_script:3.",
     "NOPERM", ErrorCode::config},
    {"ERR Error running script (call to f_3b): @user_script:1: user_script:1: attempt to index a nil value",
     "ERR", ErrorCode::outcomeUnknown},
    {"ERR unknown command", "ERR", ErrorCode::outcomeUnknown},
    {"lower case", "ERR", ErrorCode::outcomeUnknown},
};

TEST(ServerError, IsReadOutOfTheErrorsOfScriptsToo) {
  for (const Case& each : cases) {
    EXPECT_EQ(errorClass(errorReply(each.text)), each.name) << each.text;
    EXPECT_EQ(faultOf("redis://x", errorReply(each.text)).code, each.code) << each.text;
  }
}

TEST(ServerError, OnlyWhatMaySucceedLaterIsARefusal) {
  EXPECT_TRUE(isRefusal(errorReply("LOADING Redis is loading the dataset in memory")));
  EXPECT_FALSE(isRefusal(errorReply("NOPERM this user has no permissions")));
  EXPECT_FALSE(isRefusal(errorReply("WRONGTYPE Operation against a key holding the wrong kind of value")));
  Reply status;
  status.kind = ReplyKind::status;
  status.text = "LOADING";
  EXPECT_FALSE(isRefusal(status));
}

}  // namespace
}  // namespace lockkeeper::redis
