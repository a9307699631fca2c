#include "base/time_heap.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <vector>

namespace lockkeeper::detail {
namespace {

struct TimedItem {
  Instant time{};
  HeapPlace place = nowhere;

  Instant itsTime() const { return time; }
};
using Heap = TimeHeap<TimedItem, &TimedItem::place, &TimedItem::itsTime>;

TEST(TimeHeap, GivesTheEarliestFirstWhateverIsTakenOut) {
  std::mt19937 random(7);
  std::vector<TimedItem> items(200);
  std::multimap<Instant, TimedItem*> expected;
  Heap heap;
  for (int step = 0; step < 20'000; ++step) {
    TimedItem& item = items[random() % items.size()];
    if (item.place == nowhere) {
      item.time = Instant(std::chrono::nanoseconds(random() % 50));
      heap.add(item);
      expected.emplace(item.time, &item);
    } else {
      heap.remove(item);
      std::erase_if(expected, [&](const auto& entry) { return entry.second == &item; });
      EXPECT_EQ(item.place, nowhere);
    }
    ASSERT_EQ(heap.size(), expected.size());
    ASSERT_EQ(heap.firstTime(), expected.empty() ? Instant::max() : expected.begin()->first);
  }
  while (!heap.empty()) {
    ASSERT_EQ(heap.first().time, heap.firstTime());
    ASSERT_EQ(heap.firstTime(), expected.begin()->first);
    expected.erase(expected.begin());
    heap.remove(heap.first());
  }
}

TEST(TimeHeap, WhatIsInNoHeapNeedNotBeTakenOut) {
  TimedItem in{.time = Instant(std::chrono::seconds(1))};
  TimedItem out;
  Heap heap;
  heap.add(in);
  heap.remove(out);
  EXPECT_EQ(&heap.first(), &in);
}

}  // namespace
}  // namespace lockkeeper::detail
