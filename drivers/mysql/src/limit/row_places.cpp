#include "limit/row_places.h"

namespace lockkeeper::mysql {

// By way of the other constructor, so that what was taken is given back when the memory runs out.
RowPlaces::Guard::Guard(RowPlaces& places, const std::vector<rates::RowName>& rows, Instant deadline)
    : Guard(places) {
  taken_.reserve(rows.size());
  std::unique_lock held(places_.mutex_);
  for (const rates::RowName& each : rows) {
    std::pair name(each.family, std::string(each.id));
    Row& row = places_.rows_[name];
    while (row.inside == places_.atOneRow_) {
      if (places_.clock_.now() >= deadline) return;
      ++row.waiting;
      places_.clock_.wait(held, row.left, deadline);
      --row.waiting;
    }
    ++row.inside;
    taken_.push_back(std::move(name));
  }
  complete_ = true;
}

RowPlaces::Guard::~Guard() {
  const std::lock_guard held(places_.mutex_);
  for (const auto& name : taken_) {
    const auto found = places_.rows_.find(name);
    Row& row = found->second;
    --row.inside;
    if (row.waiting > 0) {
      row.left.notify_one();
    } else if (row.inside == 0) {
      places_.rows_.erase(found);
    }
  }
}

}  // namespace lockkeeper::mysql
