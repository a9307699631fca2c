#include "lockkeeper/mysql/server_rows.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;

TEST(ServerRows, NamesAWrongOption) {
  const auto refused = [](std::size_t sessions, std::chrono::seconds operationTimeout) -> std::string {
    try {
      const ServerRows rows(StoreUri::parse("mysql://ann:secret@h/shop"),
                            {.sessions = sessions, .operationTimeout = operationTimeout});
    } catch (const std::invalid_argument& failure) {
      return failure.what();
    }
    return "accepted";
  };
  struct Case {
    std::size_t sessions;
    std::chrono::seconds operationTimeout;
    const char* fault;
  };
  for (const Case& each : {
           Case{0, 2s, "sessions is 0: 1 to 256 are allowed"},
           Case{257, 2s, "sessions is 257: 1 to 256 are allowed"},
           Case{8, 0s, "operationTimeout is 0s: it must be 1s to 1h"},
           Case{8, -1s, "operationTimeout is -1s: it must be 1s to 1h"},
           Case{8, 3601s, "operationTimeout is 3601s: it must be 1s to 1h"},
           // So many that their milliseconds, and twice as many, are a time in the range again.
           Case{8, std::chrono::seconds{1'844'674'407'370'955'162},
                "operationTimeout is 1844674407370955162s: it must be 1s to 1h"},
           Case{8, std::chrono::seconds::max(),
                "operationTimeout is 9223372036854775807s: it must be 1s to 1h"},
           Case{1, 1s, "accepted"},
           Case{256, 1h, "accepted"},
       }) {
    EXPECT_EQ(refused(each.sessions, each.operationTimeout), each.fault);
  }
}

TEST(Contention, IsToldByTheTextOfPocosExceptions) {
  EXPECT_TRUE(tellsContention("x\t[mysql_stmt_errno]: 1213\t[…"));
  EXPECT_TRUE(tellsContention("x\t[mysql_errno]: 1020\t[…"));
  EXPECT_FALSE(tellsContention("x\t[mysql_stmt_errno]: 1062\t[…"));
  EXPECT_FALSE(tellsContention("1213"));
}

}  // namespace
}  // namespace lockkeeper::mysql
