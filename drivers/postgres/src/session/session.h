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
#include "session/fault.h"
#include "session/log_in.h"
#include "session/statement.h"

namespace lockkeeper::postgres {

/// One session with a PostgreSQL server, whose calls block until their deadline and no longer. What it sends
/// means the same whatever the server's defaults are: a session of our own is pinned when it is new, and
/// statements are prepared in it; one of a pooler's sends the pins with each transaction, in the same round
/// trip. Never reconnects. One thread at a time.
///
/// All calls throw what throwFault() says. After an error that left the session open, it can be used again;
/// after others it is not `usable()`, and must be closed.
class Session {
 public:
  /// `schemaFile` is what makes the table that its statements use, for messages.
  Session(Handle handle, const ServerFacts& facts, std::string display, std::string schemaFile,
          std::shared_ptr<Clock> clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// One statement, which is a transaction of its own. Throws OutcomeUnknown when it was sent and has no
  /// answer by `deadline`.
  Result ask(const Statement& statement, Instant deadline);

  /// The statements as one transaction, in one round trip: all or none of them. OutcomeUnknown as above.
  std::vector<Result> transact(std::span<const Statement> statements, Instant deadline);

  /// Begins a transaction with the statements, in one round trip, and leaves it open for proceed() and
  /// command("COMMIT"). After an error that leaves the session open it is rolled back. Statements are not
  /// prepared: their texts may be an application's, and any number. OutcomeUnknown as above, although nothing
  /// is committed.
  /// @{
  std::vector<Result> begin(std::span<const Statement> statements, Instant deadline);
  Result proceed(const Statement& statement, Instant deadline);
  /// @}

  /// A statement that is no transaction and needs no pins, such as LISTEN.
  Result command(std::string_view text, Instant deadline);

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
  bool usable() const;
  /// It was lost with a statement that the server may read yet.
  bool isGivenUp() const { return isLost_ && effect_ == Effect::unknown && facts_.isDirect; }
  bool isDirect() const { return facts_.isDirect; }
  const ServerFacts& facts() const { return facts_; }

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

  std::vector<Result> run(std::span<const Statement> statements, Form form, Instant until);
  void send(std::span<const Statement> statements, Form form, Instant until);
  void sendOne(const Statement& statement, bool isPrepared);
  void flush(Instant until);
  std::vector<Result> receive(std::size_t statements, Form form, Instant until);
  /// The next result; null at the end of those of a statement.
  pg_result* next(Instant until);
  void await(short events, Instant until);
  /// Throws for a session that is lost, by the effect of what was sent.
  [[noreturn]] void lose(const std::string& words);
  pg_conn* connection() const { return handle_.get(); }

  Handle handle_;
  const ServerFacts facts_;
  const std::string display_;
  const std::string schemaFile_;
  const std::shared_ptr<Clock> clock_;
  using Names = std::map<std::string, std::string, std::less<>>;
  Names prepared_;                          // The names of statements by their texts.
  std::vector<Names::iterator> preparing_;  // In the round trip that is under way.
  std::size_t names_ = 0;
  bool isPipeline_ = false;  // It is.
  Effect effect_ = Effect::none;
  bool isLost_ = false;
  bool warned_ = false;
  bool listens_ = false;
  ServerTime time_;
  std::uint64_t term_ = 0;
};

}  // namespace lockkeeper::postgres
