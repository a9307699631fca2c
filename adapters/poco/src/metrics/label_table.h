#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockkeeper::poco {

/// What is counted for each value of a label. Values come from the configuration and are few: there is room
/// for 256, and later ones share a place under overflowLabel. Finds a value without lock or allocation; its
/// first time allocates. Thread-safe.
template <class Counts>
class LabelTable {
 public:
  static constexpr std::string_view overflowLabel = "(others)";

  LabelTable() = default;
  LabelTable(const LabelTable&) = delete;
  LabelTable& operator=(const LabelTable&) = delete;
  ~LabelTable() {
    for (auto& place : places_) delete place.load(std::memory_order_relaxed);
  }

  Counts& of(std::string_view label) {
    const std::size_t first = std::hash<std::string_view>{}(label);
    for (std::size_t step = 0; step < placeCount; ++step) {
      auto& place = places_[(first + step) % placeCount];
      Entry* entry = place.load(std::memory_order_acquire);
      if (entry == nullptr) entry = fill(place, label);
      if (entry->label == label) return entry->counts;
    }
    overflowed_.store(true, std::memory_order_release);
    return others_;
  }

  /// Calls `visit(label, counts)` for each value so far.
  template <class Visit>
  void forEach(Visit visit) const {
    for (const auto& place : places_) {
      const Entry* entry = place.load(std::memory_order_acquire);
      if (entry != nullptr) visit(std::string_view(entry->label), entry->counts);
    }
    if (overflowed_.load(std::memory_order_acquire)) visit(overflowLabel, others_);
  }

 private:
  static constexpr std::size_t placeCount = 256;

  struct Entry {
    explicit Entry(std::string_view text) : label(text) {}
    const std::string label;
    Counts counts{};
  };

  // Who comes second to a place uses what the first one has put there.
  static Entry* fill(std::atomic<Entry*>& place, std::string_view label) {
    auto fresh = std::make_unique<Entry>(label);
    Entry* present = nullptr;
    return place.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel) ? fresh.release()
                                                                                          : present;
  }

  std::array<std::atomic<Entry*>, placeCount> places_{};
  std::atomic<bool> overflowed_ = false;
  Counts others_{};
};

}  // namespace lockkeeper::poco
