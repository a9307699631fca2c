#include "cluster/journey.h"

#include <string>

namespace lockkeeper::redis {

Journey::Journey(ClusterMap& map, std::uint16_t slot, Instant deadline)
    : map_(map), route_(map.route(slot, deadline)), deadline_(deadline), node_(route_.master) {}

void Journey::follow(const Error& error) {
  if (++hops_ > mostHops) giveUp(error);
  if (const auto* const redirected = dynamic_cast<const Redirected*>(&error)) {
    return redirect(redirected->redirect());
  }
  if (error.code() != ErrorCode::storeUnavailable) {
    // Also for a wrong set-up: somebody else may have the address of a former master.
    map_.suspect(route_);
    throw;
  }
  if (!map_.reconsider(route_, deadline_)) giveUp(error);
  node_ = route_.master;
  importing_ = false;
}

void Journey::redirect(const Redirect& redirect) {
  NodeAddress to = redirect.to;
  if (to.host.empty()) to.host = node_.host;
  switch (redirect.kind) {
    case Redirect::Kind::moved:
      map_.moved(route_, to);
      route_.master = node_ = to;
      importing_ = false;
      return;
    case Redirect::Kind::ask:
      node_ = to;
      importing_ = true;
      return;
    case Redirect::Kind::down:
      map_.suspect(route_);
      throw;
    case Redirect::Kind::tryAgain:
      throw;
  }
}

// An address that the application has not written may be one that only the cluster itself can reach.
void Journey::giveUp(const Error& error) const {
  std::string text = error.what();
  if (!map_.isSeed(node_) && text.find("cannot be reached") != std::string::npos) {
    text += "; the cluster announces this address for slot " + std::to_string(route_.slot);
  }
  if (const std::string why = map_.failure(); !why.empty()) text += "; " + why;
  throw StoreUnavailable(text);
}

}  // namespace lockkeeper::redis
