#include "base/hash_chains.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <vector>

namespace lockkeeper::detail {
namespace {

struct NumberedItem {
  std::size_t number = 0;
  NumberedItem* next = nullptr;

  // Several items have the same.
  std::size_t hash() const { return number / 3; }
};
using Chains = HashChains<NumberedItem, &NumberedItem::next, &NumberedItem::hash>;

NumberedItem* find(const Chains& chains, std::size_t number) {
  return chains.find(number / 3, [=](const NumberedItem& item) { return item.number == number; });
}

TEST(HashChains, FindsWhatIsInItWhateverIsTakenOut) {
  std::mt19937 random(7);
  std::vector<NumberedItem> items(200);
  for (std::size_t number = 0; number < items.size(); ++number) items[number].number = number;
  std::set<std::size_t> expected;
  Chains chains;
  for (int step = 0; step < 20'000; ++step) {
    NumberedItem& item = items[random() % items.size()];
    if (expected.insert(item.number).second) {
      chains.reserve(chains.size() + 1);
      chains.add(item);
    } else {
      expected.erase(item.number);
      chains.remove(item);
    }
    ASSERT_EQ(chains.size(), expected.size());
    const std::size_t asked = random() % items.size();
    ASSERT_EQ(find(chains, asked), expected.contains(asked) ? &items[asked] : nullptr);
  }
}

TEST(HashChains, FindsNothingBeforeAnythingIsThere) { EXPECT_EQ(find(Chains(), 1), nullptr); }

}  // namespace
}  // namespace lockkeeper::detail
