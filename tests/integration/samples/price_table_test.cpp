#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using std::chrono::seconds;

class PriceTable : public ::testing::Test {
 protected:
  PriceTable() { writeFile(table(), ""); }

  std::string table() const { return folder_ / "prices"; }
  std::unique_ptr<Process> start(const std::string& store, std::initializer_list<std::string> task) {
    std::vector<std::string> command{PRICE_TABLE, store, table()};
    command.insert(command.end(), task);
    const std::string name = "output" + std::to_string(++started_);
    return std::make_unique<Process>(
        command, ProcessOptions{.standardOutput = folder_ / name, .standardError = folder_ / "errors"});
  }
  std::string errors() const { return readFile(folder_ / "errors"); }

  RedisServer redis_;
  TempFolder folder_;
  int started_ = 0;
};

TEST_F(PriceTable, FiftyReadersNeverSeeATableThatIsHalfWritten) {
  const auto writer = start(redis_.uri(), {"write", "30"});
  const auto some = start(redis_.uri(), {"read", "20", "25"});
  const auto others = start(redis_.uri(), {"read", "20", "25"});
  EXPECT_EQ(some->waitFor(seconds{40}), 0) << readFile(folder_ / "output2") << errors();
  EXPECT_EQ(others->waitFor(seconds{40}), 0) << readFile(folder_ / "output3") << errors();
  EXPECT_EQ(writer->waitFor(seconds{40}), 0) << errors();
}

TEST_F(PriceTable, WithoutTheLockTheyDo) {
  const auto writer = start("unlocked", {"write", "1000000"});
  const auto readers = start("unlocked", {"read", "1000000", "4"});
  EXPECT_EQ(readers->waitFor(seconds{40}), 1) << errors();
  EXPECT_EQ(readFile(folder_ / "output2"), "4 readers have seen a table that was half-written\n");
}

TEST_F(PriceTable, AWriterThatIsKilledInTheMiddleFoolsNobody) {
  const auto killed = start(redis_.uri(), {"write", "1000000"});
  // "2" is the mark of a table that is being written.
  ASSERT_TRUE(waitUntil([&] {
    killed->pause();
    if (readFile(table()).substr(0, 42).find(" 2 ") != std::string::npos) return true;
    killed->resume();
    return false;
  }));
  killed->signal(SIGKILL);
  killed->waitFor(seconds{20});
  redis_.command({"DEL", "price-table"});  // as if its lease had ended
  const auto reader = start(redis_.uri(), {"read", "1"});
  EXPECT_FALSE(reader->waitFor(std::chrono::milliseconds{200})) << "it has taken the table for a whole one";
  const auto next = start(redis_.uri(), {"write", "1"});
  EXPECT_EQ(next->waitFor(seconds{20}), 0) << errors();
  EXPECT_EQ(reader->waitFor(seconds{20}), 0) << errors();
}

TEST_F(PriceTable, AWriterWithAnOldFenceStops) {
  const auto writer = start(redis_.uri(), {"write", "1"});
  ASSERT_EQ(writer->waitFor(seconds{20}), 0) << errors();
  std::string newer = readFile(table());
  newer.replace(0, 20, "18446744073709551615");
  writeFile(table(), newer);
  const auto late = start(redis_.uri(), {"write", "1"});
  EXPECT_EQ(late->waitFor(seconds{20}), 70);
  EXPECT_EQ(errors(), "price_table: a newer writer has been here\n");
  EXPECT_EQ(readFile(table()), newer);
}

}  // namespace
}  // namespace lockkeeper::test
