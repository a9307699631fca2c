#include "simulation/redis/replication.h"

#include <algorithm>

namespace lockkeeper::simulation {

void Replication::follow(Replication* master) {
  if (link_) {
    link_->open = false;
    std::erase(link_->master.replicas_, link_);
    link_ = nullptr;
  }
  if (master) {
    cutOff();
    link_ = std::make_shared<Link>(Link{.master = *master, .replica = *this});
    master->replicas_.push_back(link_);
    master->send(link_, 50 * millisecond);
  }
  changed_();
}

void Replication::cutOff() {
  for (const auto& each : replicas_) each->open = false;
  replicas_.clear();
}

void Replication::wrote() {
  ++offset_;
  for (const auto& each : replicas_) send(each, 300 * microsecond);
}

std::size_t Replication::having(std::int64_t offset) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      replicas_.begin(), replicas_.end(), [&](const auto& each) { return each->acknowledged >= offset; }));
}

// And the acknowledgement comes back.
void Replication::send(const std::shared_ptr<Link>& link, Time slowest) {
  const auto length = [&](Time most) {
    return 20 * microsecond + static_cast<Time>(chance_.upTo(static_cast<std::uint64_t>(most)));
  };
  link->last = std::max({scheduler_.now() + length(slowest), heldUntil_, link->last + 1});
  const Time back = link->last + length(300 * microsecond);
  scheduler_.at(link->last, [link, copy = keys_.copy(), offset = offset_, back] {
    if (!link->open) return;
    link->replica.keys_.replaceBy(copy);
    link->replica.offset_ = offset;
    link->master.scheduler_.at(back, [link, offset] {
      if (!link->open) return;
      link->acknowledged = std::max(link->acknowledged, offset);  // they may pass each other
      link->master.changed_();
    });
  });
}

}  // namespace lockkeeper::simulation
