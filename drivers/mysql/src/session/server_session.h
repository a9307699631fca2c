#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "session/log_in.h"
#include "session/server_check.h"
#include "session/wait/socket_watch.h"

struct st_mysql_stmt;

namespace lockkeeper {
struct ServerAddress;
}

namespace lockkeeper::mysql {

struct ServerOptions;

/// What came back for a batch of statements.
struct Reply {
  /// At least so many columns, whatever the server sends; those it has not sent are NULL.
  static constexpr std::size_t leastColumns = 8;
  using Row = std::vector<std::optional<std::string>>;
  enum class Type { text, integer, floating };

  unsigned error = 0;          ///< The server's or the client library's number; 0: every statement succeeded.
  std::string reason{};        ///< The error's words; they hold no secret.
  std::size_t answered = 0;    ///< How many statements have succeeded.
  std::vector<Row> rows{};     ///< Of the last result that has any.
  std::vector<Type> types{};   ///< Of its columns.
  std::uint64_t changed = 0;   ///< Rows that the statements without a result have changed, all together.
  std::uint64_t insertId = 0;  ///< What the last statement to do so has set by LAST_INSERT_ID(expression).

  /// The session is gone, and all that it held.
  bool lost() const;

  /// A field of the first row; empty for NULL, for a result without rows, and for what is no number.
  std::optional<std::uint64_t> number(std::size_t column) const;
  std::string text(std::size_t column) const;
};

/// 0 for NULL and for what is no number.
std::int64_t numberIn(const std::optional<std::string>& field);

/// One session with a MySQL or MariaDB server, through the client library itself and not Poco: a lock cannot
/// do without its error numbers, its way to send now and read later, unix sockets and TLS. Statements are
/// text in batches, or prepared one by one. Never reconnects. One thread at a time.
class ServerSession {
 public:
  /// Connects to one of the options' hosts and logs in, as logIn() says.
  ServerSession(const ServerOptions& options, const ServerAddress& address, std::shared_ptr<Clock> clock,
                SocketWatch& watch, Instant deadline);
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// Says goodbye to the server, without waiting for it. Without a word while that still works on a
  /// statement.
  ~ServerSession();

  /// Its CONNECTION_ID(), asked when it was new.
  std::uint64_t id() const { return id_; }

  /// What the server calls our end of the connection, such as "10.0.0.7:4711". Tells the session from one
  /// that has the same id after a restart of the server. Without a port through a unix socket. Empty unless
  /// the Preparation asks for it.
  const std::string& clientName() const { return clientName_; }
  void setClientName(std::string name) { clientName_ = std::move(name); }

  /// What whoever accepted the connection called it; another number when that was a proxy.
  std::uint64_t greetedId() const;

  /// Which server this is, by whatever it says of itself. Not for one behind a proxy with sessions of its
  /// own.
  void setServer(std::string server) { server_ = std::move(server); }
  /// Empty where that is not known.
  const std::string& server() const { return server_; }

  void setFacts(ServerFacts facts) { facts_ = std::move(facts); }
  const ServerFacts& facts() const { return facts_; }

  /// Whether the server has been told that it is to be a member of a replication group.
  void setInGroup() { inGroup_ = true; }
  bool inGroup() const { return inGroup_; }

  /// Whether the table that it is for must be made first.
  void setLacksTable(bool lacks) { lacksTable_ = lacks; }
  bool lacksTable() const { return lacksTable_; }

  /// Which of the times that the primary was found this session is of; SessionOpener counts them.
  void setTerm(std::uint64_t term) { term_ = term; }
  std::uint64_t term() const { return term_; }

  /// Whatever waits for the server returns soon, in whatever thread. The session can be used no more.
  void cut() const;

  /// Whether the other one's id() means the same session here.
  bool reaches(const ServerSession& other) const { return !server_.empty() && server_ == other.server_; }

  /// Sends statements that are separated by ';'. Blocks while the server takes no more of them; the session
  /// is cut off at `until`. False when the session is gone.
  bool send(std::string_view statements, Instant until);

  /// Waits until a reply, or the session's end, can be read; false at `until`, or as soon as `wakeUp` can be
  /// read. Nothing is lost by that: it can be awaited again.
  bool await(Instant until, int wakeUp = -1);

  /// Whether await() would return at once.
  bool readable() const;

  /// Waits until one of the sessions, which may be none, is readable(), or until `until`, or as soon as
  /// `wakeUp` can be read.
  static void awaitAny(std::span<const ServerSession* const> sessions, const Clock& clock, Instant until,
                       int wakeUp);

  /// Reads the reply to send(). Blocks for the rest of it; the session is cut off at `until`. The result
  /// lives until the next call.
  Reply& receive(Instant until);

  /// await() and receive(). The reply is that of a lost session when none came by `until`.
  const Reply& answer(Instant until);

  /// send() and answer().
  const Reply& query(std::string_view statements, Instant until);

  /// As query(), for one statement without a result whose values stand as '?' in its text: the server parses
  /// it once for this session, and not at each call.
  using Parameter = std::variant<std::string_view, std::int64_t>;
  const Reply& execute(const std::string& statement, std::span<const Parameter> parameters, Instant until);

 private:
  struct Close {
    void operator()(st_mysql_stmt* statement) const;
  };
  using Prepared = std::unique_ptr<st_mysql_stmt, Close>;

  /// A socket of our own, closed with it; -1 for none.
  class Socket {
   public:
    Socket() = default;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    void duplicate(int other);
    operator int() const { return number_; }

   private:
    int number_ = -1;
  };

  Reply& failed();
  Reply& tooLong();
  void setError(unsigned number, const char* words);

  const std::shared_ptr<Clock> clock_;
  Handle handle_;
  std::map<std::string, Prepared, std::less<>> prepared_;  // by their texts
  Socket socket_;
  std::optional<SocketWatch::Socket> watched_;
  std::uint64_t id_ = 0;
  std::string clientName_;
  std::string server_;
  ServerFacts facts_;
  bool inGroup_ = false;
  bool lacksTable_ = false;
  std::uint64_t term_ = 0;
  bool replyDue_ = false;
  Reply reply_;
};

}  // namespace lockkeeper::mysql
