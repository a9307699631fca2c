#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/error.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// Where a node of a Redis Cluster is.
struct NodeAddress {
  std::string host{};
  std::uint16_t port = 0;

  std::string text() const;
  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
  friend auto operator<=>(const NodeAddress&, const NodeAddress&) = default;
};

/// "host:port", where the host may be an IPv6 address without brackets, or empty. Nothing for any other text.
std::optional<NodeAddress> addressIn(std::string_view text);

/// Why a node of a Redis Cluster has refused a command. Nothing was done.
struct Redirect {
  enum class Kind {
    moved,     ///< The slot belongs to the node at `to`.
    ask,       ///< The slot is on its way to the node at `to`, which may have this key already.
    tryAgain,  ///< The slot is on its way, and some of the command's keys are at each of both nodes.
    down,      ///< The cluster does not serve the slot now.
  };

  Kind kind;
  NodeAddress to{};  ///< Of moved and ask. An empty host: that of the node which was asked.
};

/// The redirect in an error reply; empty when it is none.
std::optional<Redirect> redirectIn(const Reply& error);

/// Whether it says that the slot is on its way: the node lacks some of the command's keys, or all.
bool isOnItsWay(const Reply& error);

/// What the refusal means, in words for people.
std::string describe(const Redirect& redirect);

/// The refusal as an error, for those who know the other nodes.
class Redirected : public StoreUnavailable {
 public:
  Redirected(const std::string& message, Redirect redirect)
      : StoreUnavailable(message), redirect_(std::move(redirect)) {}

  const Redirect& redirect() const { return redirect_; }

 private:
  Redirect redirect_;
};

}  // namespace lockkeeper::redis
