#include "workers.h"

namespace lockkeeper::test {
namespace {

class Counters : public WorkersTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Counters, LoseNothingBetweenLegacyClientsAndOurs) {
  constexpr int keys = 8;
  const std::string seconds = "8";
  const auto outputs =
      runAll({"php", script("counter_worker.php"), std::to_string(server.port()), "LegacyLock", folder.path(),
              seconds, std::to_string(keys), "3"},
             {COUNTER_WORKER, uri(GetParam()), folder.path(), seconds, std::to_string(keys)});
  const int added = sumOf(outputs, "added");
  int counted = 0;
  for (int key = 0; key < keys; ++key) {
    counted += std::atoi(readFile(folder / ("key" + std::to_string(key))).c_str());
  }
  EXPECT_EQ(sumOf(outputs, "overruns"), 0) << "the machine was too slow for holders that stay in their time";
  EXPECT_EQ(counted, added);
  const int ours = sumOf({outputs.begin() + legacyWorkers, outputs.end()}, "added");
  // Enough to be in each other's way, on a slow machine as well.
  EXPECT_GT(ours, 10);
  EXPECT_GT(added - ours, 10);
  std::cout << "added " << added << ", " << ours
            << " of them by ours; locks overwritten by a legacy client: " << sumOf(outputs, "uncertain")
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(Token, Counters, ::testing::Values(""));
INSTANTIATE_TEST_SUITE_P(Pure, Counters, ::testing::Values("&pure=true"));

}  // namespace
}  // namespace lockkeeper::test
