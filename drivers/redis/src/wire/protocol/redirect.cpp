#include "wire/protocol/redirect.h"

#include "lockkeeper/internal/whole_number.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// The text of an error such as "MOVED 3999 127.0.0.1:6381" or "ASK 3999 127.0.0.1:6381".
std::optional<Redirect> redirectTo(Redirect::Kind kind, std::string_view text) {
  const std::size_t last = text.rfind(' ');
  if (last == std::string_view::npos) return std::nullopt;
  auto address = addressIn(text.substr(last + 1));
  if (!address) return std::nullopt;
  return Redirect{kind, std::move(*address)};
}

}  // namespace

std::string NodeAddress::text() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<NodeAddress> addressIn(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = wholeNumber<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  // "?" is what a node says that has no name yet.
  if (!port || *port == 0 || host == "?") return std::nullopt;
  return NodeAddress{std::string(host), *port};
}

std::optional<Redirect> redirectIn(const Reply& error) {
  if (isError(error, "MOVED")) return redirectTo(Redirect::Kind::moved, error.text);
  if (isError(error, "ASK")) return redirectTo(Redirect::Kind::ask, error.text);
  if (isError(error, "TRYAGAIN")) return Redirect{Redirect::Kind::tryAgain};
  if (isError(error, "CLUSTERDOWN")) return Redirect{Redirect::Kind::down};
  return std::nullopt;
}

bool isOnItsWay(const Reply& error) { return isError(error, "ASK") || isError(error, "TRYAGAIN"); }

std::string describe(const Redirect& redirect) {
  switch (redirect.kind) {
    case Redirect::Kind::moved:
      return "the slot of the key is on another node (MOVED)";
    case Redirect::Kind::ask:
      return "the slot of the key is on its way to another node (ASK)";
    case Redirect::Kind::tryAgain:
      return "the slot of the key is on its way to another node (TRYAGAIN)";
    case Redirect::Kind::down:
      break;
  }
  return "the cluster is down (CLUSTERDOWN): too few masters see each other, or the slot has no master";
}

}  // namespace lockkeeper::redis
