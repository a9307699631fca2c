#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "postgres_server.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// Somebody else's transaction keeps rows, or whatever a statement takes, while this lives. One at a time.
class KeptRows {
 public:
  /// `taking` is the statement, such as "SELECT FROM t WHERE n = 1 FOR UPDATE".
  KeptRows(const PostgresServer& server, const std::string& taking) : server_(server) {
    keeper_ = std::jthread([this, taking] {
      try {
        server_.execute("BEGIN; " + taking + "; SELECT pg_sleep(600)");
      } catch (const std::runtime_error&) {
        // Its session was ended.
      }
    });
    EXPECT_TRUE(waitUntil([this] { return count(sleeps) == 1; }));
  }
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;
  ~KeptRows() {
    server_.ask(std::string("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE ") + sleeps);
  }

  /// How many sessions are as the condition says.
  int count(const std::string& condition) const {
    return std::stoi(server_.ask("SELECT count(*) FROM pg_stat_activity WHERE " + condition));
  }

 private:
  static constexpr const char* sleeps = "wait_event = 'PgSleep'";
  const PostgresServer& server_;
  std::jthread keeper_;
};

}  // namespace lockkeeper::test
