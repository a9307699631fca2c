#include "version/given_up_sessions.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"
#include "session/reply_fault.h"
#include "version/texts/lock_texts.h"

namespace lockkeeper::mysql {
namespace {

// More than a driver can have open at once. Beyond that, the oldest are forgotten: their server has been
// away for long.
constexpr std::size_t mostRemembered = 1024;

constexpr std::chrono::milliseconds betweenLooks{10};

}  // namespace

void GivenUpSessions::add(SessionPool::Use& use) {
  use.close();
  const ServerSession& session = use.session();
  // What was sent through a unix socket has arrived.
  const bool byNetwork = session.clientName().find(':') != std::string::npos;
  if (session.server().empty() || !byNetwork) return;
  const std::lock_guard held(mutex_);
  if (sessions_.size() == mostRemembered) sessions_.erase(sessions_.begin());
  sessions_.push_back({session.server(), session.id(), session.clientName()});
  any_ = true;
}

void GivenUpSessions::end(SessionPool::Use& use, Instant deadline) {
  if (!any_) return;
  std::vector<Session> here;
  {
    const std::lock_guard held(mutex_);
    std::ranges::copy_if(sessions_, std::back_inserter(here),
                         [&](const Session& each) { return each.server == use.session().server(); });
  }
  if (here.empty()) return;
  const std::string search = "SELECT ID FROM information_schema.PROCESSLIST WHERE " + isOneOf(here);
  try {
    // A session that was ended is in the list until its statement has been undone.
    std::set<std::string> killed;
    while (true) {
      const auto rows = use.ask(search, deadline).rows;
      if (rows.empty()) break;
      for (const Reply::Row& row : rows) {
        const std::string id = row.at(0).value_or("");
        if (!killed.insert(id).second) continue;
        try {
          use.ask("KILL " + id, deadline);
        } catch (const Refused&) {
          // It has just ended by itself.
        }
      }
      if (use.clock().now() >= deadline) {
        throw StoreUnavailable("mysql+version: the server still carries out a statement that was given up");
      }
      pauseUntil(use.clock(), std::min(use.clock().now() + betweenLooks, deadline));
    }
  } catch (const OutcomeUnknown& lost) {
    throw StoreUnavailable(lost.what());  // nothing has been asked for yet
  }
  forget(here);
}

std::string GivenUpSessions::isOneOf(const std::vector<Session>& sessions) {
  std::string text;
  for (const Session& each : sessions) {
    text.append(text.empty() ? "(" : " OR (").append("ID = ").append(std::to_string(each.id));
    text.append(" AND HOST = ").append(hexLiteral(each.client)).append(")");
  }
  return text;
}

void GivenUpSessions::forget(const std::vector<Session>& sessions) {
  const std::lock_guard held(mutex_);
  std::erase_if(sessions_,
                [&](const Session& each) { return std::ranges::find(sessions, each) != sessions.end(); });
  any_ = !sessions_.empty();
}

}  // namespace lockkeeper::mysql
