#include "fenced_row.h"
#include "overlaps.h"
#include "workers.h"

namespace lockkeeper::test {
namespace {

/// Legacy holders that stay in their sections for up to four times their timeout, and holders of ours on the
/// same keys. Everybody writes to guarded rows.
class Overruns : public WorkersTest {
 protected:
  static constexpr int keys = 4;

  void run(const std::string& lockClass, const std::string& parameters) {
    const std::string seconds = "14";
    outputs = runAll(
        {"php", script("row_worker.php"), std::to_string(server.port()), lockClass, folder.path(), seconds,
         std::to_string(keys), "1"},
        {ROW_WORKER, uri("&skewAllowance=0ms" + parameters), folder.path(), seconds, std::to_string(keys)});
    std::vector<Hold> legacy;
    std::vector<Hold> ours;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto& holds = i < legacyWorkers ? legacy : ours;
      for (Hold& hold : holdsIn(outputs[i])) holds.push_back(std::move(hold));
    }
    overlaps = overlapsOf(legacy, ours);
    tellLosses();
    ASSERT_GT(legacy.size(), 5U);
    ASSERT_GT(ours.size(), 5U);
    checkRows(legacy, ours);
  }

  /// Every write that was accepted is in its row, and nothing else.
  void checkRows(const std::vector<Hold>& legacy, const std::vector<Hold>& ours) const {
    std::uint64_t accepted = 0;
    for (const auto* holds : {&legacy, &ours}) {
      for (const Hold& hold : *holds) {
        accepted += static_cast<std::uint64_t>(
            std::count_if(hold.writes.begin(), hold.writes.end(),
                          [](const Hold::Write& write) { return write.result == "accepted"; }));
      }
    }
    std::uint64_t values = 0;
    for (int key = 0; key < keys; ++key) {
      values += FencedRow(folder / ("key" + std::to_string(key))).value();
    }
    EXPECT_EQ(values, accepted);
  }

  int told(const std::string& reason) const {
    int count = 0;
    for (const std::string& output : outputs) {
      const std::string line = "lost " + reason + "\n";
      for (auto at = output.find(line); at != std::string::npos; at = output.find(line, at + 1)) ++count;
    }
    return count;
  }

  void tellLosses() const {
    std::cout << "displaced holders of ours: " << overlaps.displaced
              << ", their writes refused: " << overlaps.refused << "; told uncertain: " << told(uncertain)
              << ", told not the owner: " << told("not the owner any more")
              << "; legacy holders that outlasted their lock: " << overlaps.outlasted << "\n";
  }

  std::vector<std::string> outputs;
  Overlaps overlaps;
};

TEST(OverlapsOf, CountsWhatARunMustNotShow) {
  const auto legacy = holdsIn("granted k 50 60\nwrote 90 refused\nends 95\n");
  const auto ours = [](const std::string& rest) {
    return holdsIn("granted k 10 20\nwrote 30 accepted\n" + rest);
  };
  const Overlaps right = overlapsOf(legacy, ours("wrote 70 unproven\nends 80\nreleased lost\n"));
  EXPECT_EQ(right.displaced, 1);
  EXPECT_EQ(right.refused, 1);
  EXPECT_EQ(right.untold + right.violations, 0);
  const Overlaps wrong = overlapsOf(legacy, ours("wrote 70 accepted\nends 80\nreleased ours\n"));
  EXPECT_EQ(wrong.violations, 1);
  EXPECT_EQ(wrong.untold, 1);
  EXPECT_EQ(overlapsOf(legacy, ours("wrote 40 accepted\nends 45\nreleased ours\n")).displaced, 0);
  EXPECT_EQ(overlapsOf(holdsIn("granted k 0 5\nends 30\n"), ours("ends 45\n")).outlasted, 1);
}

class LegacyOverruns : public Overruns, public ::testing::WithParamInterface<const char*> {};

TEST_P(LegacyOverruns, AreToldToOurHoldersBeforeTheirNextWriteIsAccepted) {
  run("LegacyLock", GetParam());
  EXPECT_GT(overlaps.outlasted, 0) << "the run has not shown what it is for";
  EXPECT_GT(overlaps.displaced, 0) << "the run has not shown what it is for";
  EXPECT_GT(told(uncertain), 0);
  EXPECT_EQ(overlaps.untold, 0);
  EXPECT_EQ(overlaps.violations, 0);
}

INSTANTIATE_TEST_SUITE_P(Token, LegacyOverruns, ::testing::Values(""));
INSTANTIATE_TEST_SUITE_P(Pure, LegacyOverruns, ::testing::Values("&pure=true"));

using PatchedOverruns = Overruns;

TEST_F(PatchedOverruns, TakeNothingFromOurHolders) {
  run("PatchedLock", "");
  EXPECT_GT(overlaps.outlasted, 0) << "the run has not shown what it is for";
  EXPECT_EQ(overlaps.displaced, 0);
  EXPECT_EQ(told(uncertain), 0);
  EXPECT_EQ(told("not the owner any more"), 0);
}

}  // namespace
}  // namespace lockkeeper::test
