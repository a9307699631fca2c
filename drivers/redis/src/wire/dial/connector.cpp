#include "wire/dial/connector.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "wire/dial/dial.h"
#include "wire/dial/tls_context.h"

namespace lockkeeper::redis {

Connector::Connector(RedisOptions options, Environment environment)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      store_(options_.display()),
      tls_(makeTlsContext(options_)) {}

std::unique_ptr<Stream> Connector::connect(Instant deadline) {
  Clock& clock = *environment_.clock;
  deadline = std::min(deadline, saturatingAdd(clock.now(), options_.connectTimeout));
  Dial dial(*this);
  while (!dial.advance()) {
    if (!waitFor(dial.awaited(), clock, deadline)) throw StoreUnavailable(dial.timeoutText());
  }
  return dial.take();
}

std::string Connector::durability() const {
  const std::lock_guard guard(mutex_);
  return durability_;
}

// Listeners are called outside the mutex.
void Connector::note(const ServerFacts& facts) {
  const std::string durability = durabilityOf(facts);
  {
    const std::lock_guard guard(mutex_);
    durability_ = durability;
    if (notedRunId_ == facts.runId) return;
    notedRunId_ = facts.runId;
  }
  environment_.tell({.kind = EventKind::noted, .store = store_, .text = durability});
}

}  // namespace lockkeeper::redis
