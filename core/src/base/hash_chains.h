#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockkeeper::detail {

/// A hash table whose items bring the links along, so that none needs memory of its own here. `next` is the
/// member that it keeps its link in, and `hash` tells the hash of an item, which must not change meanwhile.
/// Not thread-safe.
template <class Item, Item* Item::*next, std::size_t (Item::*hash)() const>
class HashChains {
 public:
  std::size_t size() const { return size_; }

  /// Makes room for so many items: it allocates nothing while there are no more.
  void reserve(std::size_t count) {
    if (count <= 2 * chains_.size()) return;
    std::vector<Item*> chains(std::bit_ceil((count + 1) / 2));
    for (Item* first : std::exchange(chains_, std::move(chains))) {
      while (first != nullptr) link(*std::exchange(first, first->*next));
    }
  }

  /// Of an item that is not in it; there must be room.
  void add(Item& item) {
    link(item);
    ++size_;
  }

  /// Of an item that is in it.
  void remove(Item& item) {
    Item** place = &chainOf((item.*hash)());
    while (*place != &item) place = &((*place)->*next);
    *place = std::exchange(item.*next, nullptr);
    --size_;
  }

  /// The item with that hash which `is` says it is; null when there is none.
  template <class Is>
  Item* find(std::size_t itsHash, Is&& is) const {
    if (chains_.empty()) return nullptr;
    Item* item = chains_[itsHash & (chains_.size() - 1)];
    while (item != nullptr && !is(*item)) item = item->*next;
    return item;
  }

 private:
  Item*& chainOf(std::size_t itsHash) { return chains_[itsHash & (chains_.size() - 1)]; }

  void link(Item& item) {
    Item*& first = chainOf((item.*hash)());
    item.*next = std::exchange(first, &item);
  }

  std::vector<Item*> chains_;  // their number is a power of two, each has two items on average at most
  std::size_t size_ = 0;
};

}  // namespace lockkeeper::detail
