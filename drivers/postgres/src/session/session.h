#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/libpq/connection.h"
#include "lockkeeper/libpq/log_in.h"
#include "session/statement.h"

namespace lockkeeper::postgres {

/// One session with a PostgreSQL server, whose calls block until their deadline and no longer. What it sends
/// means the same whatever the server's defaults are: a session of our own is pinned when it is new, and
/// statements are prepared in it; one of a pooler's sends the pins with each transaction, in the same round
/// trip. Never reconnects. One thread at a time.
///
/// All calls throw what libpq::throwFault() says; OutcomeUnknown in place of LostSession when what was sent
/// may have been applied. After an error that left the session open, it can be used again; after others it is
/// not `usable()`, and must be closed.
class Session {
 public:
  Session(libpq::LoggedIn logIn, libpq::StoreFaults store, std::shared_ptr<Clock> clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// What libpq::logIn() pins the sessions with.
  static std::string pins() { return pins(false); }

  /// One statement, which is a transaction of its own.
  Result ask(const Statement& statement, Instant deadline);

  /// The statements as one transaction, in one round trip: all or none of them.
  std::vector<Result> transact(std::span<const Statement> statements, Instant deadline);

  /// Begins a transaction with the statements, in one round trip, and leaves it open for proceed() and
  /// command("COMMIT"). After an error that leaves the session open it is rolled back. Statements are not
  /// prepared: their texts may be an application's, and any number. OutcomeUnknown as above, although nothing
  /// is committed.
  /// @{
  std::vector<Result> begin(std::span<const Statement> statements, Instant deadline);
  Result proceed(const Statement& statement, Instant deadline);
  /// @}

  /// A statement without values that needs no pins, such as LISTEN.
  Result command(const std::string& text, Instant deadline);

  /// For a statement of a pooler's session, which a later one may overtake: when its caller gives up, on the
  /// server's clock, in us. NULL for a session of our own, which is ended when it is given up. May ask the
  /// server for its time; throws StoreUnavailable then.
  Value latest(Instant deadline);

  /// Waits for notifications, until one has come, the session has ended, `until`, or `wakeUp` can be read.
  /// Calls `notified` with the channel and the text of each. Throws StoreUnavailable when the session has
  /// ended.
  void awaitNotifications(
      const std::function<void(std::string_view channel, std::string_view text)>& notified, Instant until,
      int wakeUp = -1);

  /// False after a lost answer, and for an idle session that the server has ended.
  bool usable() const { return connection_.usable(); }
  /// An answer of it was lost.
  bool isLost() const { return connection_.isLost(); }
  /// It was lost with a statement that the server may read yet.
  bool isGivenUp() const { return isLost() && connection_.mayHaveApplied() && isDirect(); }
  bool isDirect() const { return facts_.isDirect; }
  const libpq::ServerFacts& facts() const { return facts_; }

  /// Whether it notifies us of what others say on a channel; Sessions sets it.
  /// @{
  void setListens() { listens_ = true; }
  bool listens() const { return listens_; }
  /// @}

  /// Which of the times that a primary was found this session is of; Sessions counts them.
  void setTerm(std::uint64_t term) { term_ = term; }
  std::uint64_t term() const { return term_; }

 private:
  // How the statements of one round trip are sent.
  enum class Form { alone, transaction, opening /* a transaction that stays open */, step /* of that one */ };
  static bool begins(Form form) { return form == Form::transaction || form == Form::opening; }

  static std::string pins(bool isLocal);
  static const std::string& localPins();

  std::vector<Result> run(std::span<const Statement> statements, Form form, Instant until);
  void send(std::span<const Statement> statements, Form form, Instant until);
  void sendOne(const Statement& statement, bool isPrepared);
  std::vector<Result> receive(std::size_t statements, Form form, Instant until);
  /// Goes on if what the library was called for succeeded.
  void check(int succeeded) {
    if (succeeded == 0) connection_.lose();
  }

  const libpq::ServerFacts facts_;
  const std::string display_;
  const std::shared_ptr<Clock> clock_;
  libpq::Connection connection_;
  using Names = std::map<std::string, std::string, std::less<>>;
  Names prepared_;                          // The names of statements by their texts.
  std::vector<Names::iterator> preparing_;  // In the round trip that is under way.
  std::size_t names_ = 0;
  bool isPipeline_ = false;  // It is.
  bool listens_ = false;
  libpq::ServerTime time_;
  std::uint64_t term_ = 0;
};

}  // namespace lockkeeper::postgres
