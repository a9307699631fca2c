#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/mux/node_group.h"
#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// Whom to ask, and for how long. The defaults are right for one node.
struct AskRules {
  static constexpr auto untilDeadline = std::chrono::nanoseconds::max();

  std::vector<bool> nodes{};  ///< Whom to ask; empty: all.
  std::size_t needed = 1;     ///< So many are worth waiting for, before anything is sent, while they connect.
  std::size_t mayBeMisconfigured =
      0;                    ///< So many nodes count as down when they are set up wrongly, see ask().
  bool allOrNone = false;   ///< Ask none when fewer than `needed` can be asked.
  bool mustArrive = false;  ///< Nodes that do not answer now get it later, again and again until they have
                            ///< done it. For one command that may be done twice.
  /// How long to wait for connections, and then once more for answers.
  std::chrono::nanoseconds patience = untilDeadline;
  /// Why a node must not be asked now; empty when it may.
  std::function<std::string(std::size_t node, Instant now)> unfit{};
  /// Whether the answers so far are enough; without, all are waited for. Both are called under the
  /// multiplexer's mutex, on any thread.
  std::function<bool(const Request&)> enough{};
};

/// One connection to each of some servers (often one), shared by all threads. There is no thread behind it:
/// of the callers that wait, one writes what all of them have added, and one polls all connections and hands
/// out the replies (SharedPoll). Connecting goes on in the same poll, so that no server holds up another one.
/// Never sends a request twice, except what AskRules::mustArrive.
///
/// - An answer is *finished* when its replies are there, or when it is known that they will not come.
/// - A caller whose time is over *abandons* its request: what was not sent is not sent, and replies that come
///   later are dropped.
/// - A connection is *disconnected* by anything in doubt: a broken stream, a malformed reply, a server that
///   takes or says nothing for the I/O timeout, or one that is not the master any more. What was handed to
///   the socket by then is OutcomeUnknown, the rest StoreUnavailable. The next call connects again.
///
/// Thread-safe.
class Multiplexer {
 public:
  /// Judges a server that has just let us in: why it must not be used (a mistake in the set-up), or empty.
  /// Called under the multiplexer's mutex.
  using Admit = NodeGroup::Admit;

  /// All nodes have the I/O timeout of the first one.
  Multiplexer(const std::vector<RedisOptions>& nodes, const Environment& environment, Admit admit = {},
              const DialRules& rules = {});
  Multiplexer(const Multiplexer&) = delete;
  Multiplexer& operator=(const Multiplexer&) = delete;

  std::size_t size() const { return nodes_.size(); }
  const Dialer& dialer(std::size_t node = 0) const { return nodes_[node].dialer(); }
  const std::string& store(std::size_t node = 0) const { return nodes_[node].store(); }

  /// Asks the only node, and waits for all replies. Throws StoreUnavailable, ConfigError or ProtocolError
  /// with nothing sent; OutcomeUnknown or ProtocolError when it was sent. Error replies are replies.
  void execute(Request& request, Instant deadline);

  /// The same in two steps, so that several servers can be asked before the first one is waited for. start()
  /// throws with nothing sent, and then there is nothing to finish(). `request` must not be touched, nor end,
  /// before finish() has been called, which may be late: what the server says meanwhile is read then.
  /// @{
  void start(Request& request, Instant deadline);
  void finish(Request& request, Instant deadline);
  /// @}

  /// Asks the nodes that are there, and waits for their answers as `rules` say, `deadline` at most. Throws
  /// ConfigError, with nothing sent, when the answer of more nodes than the rules allow to our first attempt
  /// was that they are set up wrongly. All else is in the answers.
  void ask(Request& request, const AskRules& rules, Instant deadline);

  /// Sends commands to one node, if it is there. Nobody gets the replies.
  void tell(std::size_t node, const Request& request);

  /// Sends one command to the only node, before all that is asked later, without waiting for the reply: that
  /// is read by whoever reads next. Unless `connection` is 0, only on that one (Answer::connection). False:
  /// not sent, since the node or the connection is not there, is silent, or 1,024 such commands are under
  /// way.
  bool post(const Request& request, std::unique_ptr<Posted> posted, std::uint64_t connection = 0);

  /// Returns when the replies to what was posted before are read, or will not come, or at `deadline`.
  void awaitPosted(Instant deadline);

  /// Whether there is something that awaitPosted() waits for.
  bool hasPosted();

  /// Ends the connection that `connection` (Answer::connection) names, unless it has ended already, since the
  /// server behind it is not what we need; `why` is for others that wait for it.
  void disconnect(std::size_t node, std::uint64_t connection, const std::string& why);

  /// Ends the node's connection when it leads to another server than `server` (Dial::server()). True: it did.
  bool disconnectUnless(const std::string& server, const std::string& why, std::size_t node = 0);

  /// Whether `connection` is still there.
  bool isConnected(std::size_t node, std::uint64_t connection);

  /// Which start of the server (its run_id) `connection` leads to; empty when the connection has ended.
  std::string serverRun(std::uint64_t connection, std::size_t node = 0);

 private:
  using Lock = NodeGroup::Lock;

  template <class Call>
  void run(Request& request, Call call);
  Instant begin(Lock& lock, Request& request, const AskRules& rules, Instant deadline);
  void complete(Lock& lock, Request& request, const AskRules& rules, Instant until);
  Instant reach(Lock& lock, Request& request, const AskRules& rules, Instant deadline, Instant now);
  bool worthWaiting(const AskRules& rules, Instant now) const;
  void add(Request& request, const AskRules& rules, Instant dueAt, Instant now);
  void abandon(Node& node, Request& request, const AskRules& rules, Answer& answer);
  static void throwUnlessComplete(const Answer& answer);

  NodeGroup nodes_;
};

}  // namespace lockkeeper::redis
