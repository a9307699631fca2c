#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "queue_look.h"

namespace lockkeeper::test {

/// Who was seen in the queues of a store while nothing was done to it. Nothing tells a process that it has
/// its place in a queue: so the store is asked.
class QueueWatch {
 public:
  /// Looks again and again, for so long.
  void watch(const QueueLook& look, std::chrono::milliseconds length);

  /// The line by which a process's lease ended by itself meanwhile, or may have: then whoever asks first may
  /// get the key. That happens on a machine that stands still for longer than a lease lasts. Empty: none.
  std::string disturbance(const std::string& lines) const;

  /// The lines of a process's history, and before the answer of each lock call that came while it was watched
  /// the lines that say that it was `queued`.
  std::string withQueued(const std::string& process, const std::string& lines) const;

 private:
  struct Sighting {
    std::int64_t asked;
    std::int64_t answered;
    QueuedCaller who;
  };

  std::vector<Sighting> sightings_;
  std::int64_t until_ = 0;
};

}  // namespace lockkeeper::test
