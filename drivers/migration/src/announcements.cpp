#include "announcements.h"

#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::migration {

void Announcements::note(const std::string& message) const {
  const std::string store = "migration " + options_.name;
  tell({.kind = EventKind::noted, .store = store, .text = message});
}

void Announcements::follows(const Rules& rules) {
  if (std::exchange(started_, true) || options_.rules == rules) return;
  note("is configured for " + quoted(options_.rules.text()) + ", but follows the rules that are written, " +
       quoted(rules.text()) + ": lockkeeper migrate advance changes them");
}

void Announcements::inForce(const Rules& rules) {
  std::string text = rules.text();
  if (text == inForce_) return;
  inForce_ = std::move(text);
  const Instant now = environment_.clock->now();
  tell({.kind = EventKind::phaseChanged, .key = options_.name, .began = now, .ended = now, .text = inForce_});
}

void Announcements::tell(const Event& event) const {
  if (!stopped_) environment_.tell(event);
}

}  // namespace lockkeeper::migration
