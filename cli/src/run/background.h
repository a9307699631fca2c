#pragma once

#include <functional>
#include <future>
#include <utility>

#include "run/pollable_event.h"

namespace lockkeeper::cli {

/// Work on a thread of its own, whose end can be polled for: meanwhile this one hears signals and keys, even
/// if the store hangs. The destructor waits for that end.
template <class Result>
class Background {
 public:
  explicit Background(std::function<Result()> work)
      : result_(std::async(std::launch::async, [this, work = std::move(work)] {
          struct Announce {
            PollableEvent& event;
            ~Announce() { event.set(); }
          } announce{ended_};
          return work();
        })) {}

  /// Readable once the work has ended.
  int descriptor() const { return ended_.descriptor(); }

  /// Waits for the end. Throws what the work has thrown. Once.
  Result get() { return result_.get(); }

 private:
  PollableEvent ended_;
  std::future<Result> result_;  // the last one: its thread uses the other
};

}  // namespace lockkeeper::cli
