#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::detail {

/// The place of an item in a TimeHeap.
using HeapPlace = std::uint32_t;
/// That of what is in none.
inline constexpr HeapPlace nowhere = static_cast<HeapPlace>(-1);

/// Items by a time, the earliest first: a binary heap in which each item knows its place, so that none has to
/// be searched for. `place` is the member that this heap keeps its places in; it begins as `nowhere`. `time`
/// tells the time of an item, which must not change meanwhile. Not thread-safe.
template <class Item, HeapPlace Item::*place, Instant (Item::*time)() const>
class TimeHeap {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

  /// Instant::max() when it is empty.
  Instant firstTime() const { return items_.empty() ? Instant::max() : (first().*time)(); }
  Item& first() const { return *items_.front(); }
  /// In no order.
  Item& at(std::size_t index) const { return *items_[index]; }

  /// Makes room for so many items: it allocates nothing while there are no more.
  void reserve(std::size_t count) {
    if (count > items_.capacity()) items_.reserve(std::max(count, items_.capacity() + items_.capacity() / 2));
  }

  /// Of an item that is not in it.
  void add(Item& item) {
    items_.push_back(&item);
    rise(items_.size() - 1);
  }

  /// Nothing for one that is not in it.
  void remove(Item& item) {
    const HeapPlace hole = std::exchange(item.*place, nowhere);
    if (hole == nowhere) return;
    Item* const last = items_.back();
    items_.pop_back();
    if (last == &item) return;
    put(hole, last);
    rise(hole);
    sink(last->*place);
  }

 private:
  void put(std::size_t index, Item* item) {
    items_[index] = item;
    item->*place = static_cast<HeapPlace>(index);
  }

  void rise(std::size_t index) {
    Item* const item = items_[index];
    const Instant itsTime = (item->*time)();
    for (; index > 0 && itsTime < (items_[(index - 1) / 2]->*time)(); index = (index - 1) / 2) {
      put(index, items_[(index - 1) / 2]);
    }
    put(index, item);
  }

  void sink(std::size_t index) {
    Item* const item = items_[index];
    const Instant itsTime = (item->*time)();
    for (std::size_t child; (child = 2 * index + 1) < items_.size(); index = child) {
      if (child + 1 < items_.size() && (items_[child + 1]->*time)() < (items_[child]->*time)()) ++child;
      if (itsTime <= (items_[child]->*time)()) break;
      put(index, items_[child]);
    }
    put(index, item);
  }

  std::vector<Item*> items_;
};

}  // namespace lockkeeper::detail
