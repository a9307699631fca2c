#include "hosts/host_search.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;

// A primary that is well lets a client in sooner. The other hosts are asked beside it then.
constexpr milliseconds patience{500};
// What the other hosts have, at least, when the first one has answered: as long as that took, if that is
// more. Longer while none takes writes: the log-in at one that does is the longest, because it looks at
// tables.
constexpr milliseconds leastGrace{250};
constexpr milliseconds graceForPrimary{1000};
// A search that found nobody speaks for those who come so soon: during an outage many callers do.
constexpr milliseconds failureHolds{100};
// What a search that nobody waited for has found out is not worth more.
constexpr milliseconds searchHolds{1000};

}  // namespace

HostSearch::HostSearch(const ServerOptions& options, LogIn logIn, std::shared_ptr<Clock> clock)
    : options_(options), logIn_(std::move(logIn)), clock_(std::move(clock)), asked_(options.hosts.size()) {}

HostSearch::~HostSearch() {
  {
    const Lock held(mutex_);
    stopping_ = true;
    for (const Shared& each : attempts_) {
      if (!each->done && each->session) each->session->cut();
    }
  }
  for (const Shared& each : attempts_) {
    if (each->thread.joinable()) each->thread.join();
  }
}

std::unique_ptr<ServerSession> HostSearch::open(Instant deadline) {
  Lock held(mutex_);
  reap();
  const bool old = searching_ && waiting_ == 0 && now() - searchBegan_ > searchHolds;
  if (old) searching_ = false;
  Shared own;
  ++waiting_;
  const std::shared_ptr<void> leave(nullptr, [&](void*) {
    --waiting_;
    if (own) own->claimed = false;
  });
  for (bool first = true;; first = false) {
    // What can be read is the session's end: no reply is due.
    if (auto found = std::exchange(found_, nullptr); found && !found->readable()) return found;
    if (own && own->done) {
      const Shared ended = std::exchange(own, nullptr);
      if (ended->succeeded() && primary_ == ended->host && !ended->session->readable()) {
        return std::move(ended->session);
      }
      if (ended->report.state == HostState::unfit) throw ConfigError(ended->report.why);
      if (primary_ == ended->host && !ended->succeeded()) forgetPrimary();
    }
    if (own && primary_ && *primary_ != own->host) {
      // A search has found another one meanwhile.
      own->claimed = false;
      own = nullptr;
    }
    if (!own && primary_) {
      own = takeUp(*primary_);
      if (own->done) continue;
    }
    Instant next = deadline;
    if (own && now() < own->began + patience) {
      next = std::min(next, own->began + patience);
    } else {
      const bool failed = failure_ && (!first || now() - failedAt_ < failureHolds);
      if (!searching_ && failed) std::rethrow_exception(failure_);
      if (!searching_) beginSearch();
      next = std::min(next, judgeSearch());
      if (!searching_) continue;
    }
    if (now() >= deadline) failLate();
    clock_->wait(held, changed_, next);
  }
}

HostSearch::Shared HostSearch::start(std::size_t host) {
  const Shared attempt = attempts_.emplace_back(std::make_shared<Attempt>(host, now()));
  try {
    attempt->thread = std::thread([this, attempt] { run(attempt); });
  } catch (const std::system_error& error) {
    // As one that has failed: the other hosts are still asked, if they can be.
    attempt->report.state = HostState::unreachable;
    attempt->report.why = options_.hosts[host].display + ": no thread to ask it with: " + error.what();
    attempt->done = true;
  }
  return attempt;
}

HostSearch::Shared HostSearch::takeUp(std::size_t host) {
  const auto given = std::ranges::find_if(attempts_, [host](const Shared& each) {
    return each->host == host && !each->claimed && !(each->done && !each->succeeded());
  });
  if (given == attempts_.end()) return start(host);
  (*given)->claimed = true;
  return *given;
}

void HostSearch::forgetPrimary() {
  primary_.reset();
  found_.reset();
}

void HostSearch::run(const Shared& attempt) {
  const ServerAddress& address = options_.hosts[attempt->host];
  const Instant deadline = now() + options_.connectTimeout + options_.ioTimeout;
  HostReport report;
  try {
    auto session = logIn_.connect(address, deadline);
    report.state = HostState::unfit;  // If what follows is a ConfigError.
    ServerSession& asking = *session;
    {
      const Lock held(mutex_);
      attempt->session = std::move(session);
      if (stopping_) asking.cut();
    }
    logIn_.prepare(asking, address, deadline, report);
    report.state = HostState::writable;
  } catch (const NotPrimary& error) {
    report.state = HostState::readOnly;
    report.why = error.what();
  } catch (const ConfigError& error) {
    if (report.state == HostState::silent) report.state = HostState::refused;
    report.why = error.what();
  } catch (const std::exception& error) {
    report.state = HostState::unreachable;
    report.why = error.what();
  }
  const Lock held(mutex_);
  attempt->report = std::move(report);
  if (attempt->report.state != HostState::writable) attempt->session.reset();
  attempt->done = true;
  if (!firstAnswer_ && std::ranges::find(asked_, attempt) != asked_.end()) firstAnswer_ = now();
  changed_.notify_all();
}

// Threads that have said `done` have nothing left to do but to end. A log-in that came too late for its
// caller is good for the next one.
void HostSearch::reap() {
  std::erase_if(attempts_, [this](const Shared& each) {
    if (!each->done) return false;
    if (each->thread.joinable()) each->thread.join();
    const bool wanted = !each->claimed && each->succeeded() && primary_ == each->host &&
                        now() - each->began < searchHolds && !each->session->readable();
    return !wanted;
  });
}

void HostSearch::beginSearch() {
  searching_ = true;
  failure_ = nullptr;
  found_.reset();
  searchBegan_ = now();
  firstAnswer_.reset();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (!asked_[i] || asked_[i]->done) asked_[i] = start(i);
  }
}

Instant HostSearch::judgeSearch() {
  const bool all = std::ranges::all_of(asked_, [](const Shared& each) { return each->done; });
  if (!all) {
    if (!firstAnswer_) return Instant::max();
    const bool found = std::ranges::any_of(asked_, [](const Shared& each) { return each->succeeded(); });
    const milliseconds least = found ? leastGrace : graceForPrimary;
    const Instant end = *firstAnswer_ + std::max<Instant::duration>(least, *firstAnswer_ - searchBegan_);
    if (now() < end) return end;
  }
  searching_ = false;
  std::vector<HostReport> reports;
  for (const Shared& each : asked_) reports.push_back(each->done ? each->report : HostReport{});
  try {
    primary_ = writableAmong(reports, options_);
    found_ = std::move(asked_[*primary_]->session);
  } catch (const Error&) {
    forgetPrimary();
    failure_ = std::current_exception();
    failedAt_ = now();
  }
  for (Shared& each : asked_) {
    if (each->done) each.reset();
  }
  changed_.notify_all();
  return Instant::max();
}

void HostSearch::failLate() const {
  throw StoreUnavailable(options_.display + ": none of its hosts has let us in by the deadline");
}

}  // namespace lockkeeper::mysql
