#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// The place of an item in a TimeHeap.
using HeapPlace = std::uint32_t;
/// That of what is in none.
inline constexpr HeapPlace nowhere = static_cast<HeapPlace>(-1);

/// Items by a time, the earliest first: a binary heap in which each item knows its place, so that none has to
/// be searched for. `place` is the member that this heap keeps its places in; it begins as `nowhere`. Not
/// thread-safe.
template <class Item, HeapPlace Item::*place>
class TimeHeap {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  /// Instant::max() when it is empty.
  Instant firstTime() const { return entries_.empty() ? Instant::max() : entries_.front().time; }
  Item& first() const { return *entries_.front().item; }
  /// In no order.
  Item& at(std::size_t index) const { return *entries_[index].item; }

  /// Makes room for so many items: it allocates nothing while there are no more.
  void reserve(std::size_t count) {
    if (count > entries_.capacity()) entries_.reserve(std::max(count, 2 * entries_.capacity()));
  }

  /// Of an item that is not in it.
  void add(Item& item, Instant time) {
    entries_.push_back({time, &item});
    rise(entries_.size() - 1);
  }

  /// Nothing for one that is not in it.
  void remove(Item& item) {
    const HeapPlace hole = std::exchange(item.*place, nowhere);
    if (hole == nowhere) return;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.item == &item) return;
    put(hole, last);
    rise(hole);
    sink(last.item->*place);
  }

 private:
  struct Entry {
    Instant time;
    Item* item;
  };

  void put(std::size_t index, const Entry& entry) {
    entries_[index] = entry;
    entry.item->*place = static_cast<HeapPlace>(index);
  }

  void rise(std::size_t index) {
    const Entry entry = entries_[index];
    for (; index > 0 && entry.time < entries_[(index - 1) / 2].time; index = (index - 1) / 2) {
      put(index, entries_[(index - 1) / 2]);
    }
    put(index, entry);
  }

  void sink(std::size_t index) {
    const Entry entry = entries_[index];
    for (std::size_t child; (child = 2 * index + 1) < entries_.size(); index = child) {
      if (child + 1 < entries_.size() && entries_[child + 1].time < entries_[child].time) ++child;
      if (entry.time <= entries_[child].time) break;
      put(index, entries_[child]);
    }
    put(index, entry);
  }

  std::vector<Entry> entries_;
};

}  // namespace lockkeeper::detail
