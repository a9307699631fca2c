#include "console/break_request.h"

#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <Poco/Logger.h>
#include <Poco/Net/MediaType.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "console/json.h"
#include "http/problem.h"
#include "http/request_body.h"
#include "http/request_steps.h"
#include "http/route/client_address.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

constexpr std::size_t longestOrder = 65536;
constexpr std::chrono::seconds longestWait{10};
constexpr std::size_t longestShown = 200;
constexpr std::chrono::seconds bound{5};

Instant within() { return saturatingAdd(systemClock()->now(), bound); }

// Takes as long wherever the first difference is.
bool equal(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

bool sameOrigin(const HTTPServerRequest& request) {
  const std::string origin = request.get("Origin", "");
  const auto host = origin.find("://");
  return host != std::string::npos && !request.getHost().empty() &&
         origin.substr(host + 3) == request.getHost();
}

std::string nameOf(const Holder& holder) {
  return holder.owner.empty() ? "an unknown client" : printable(holder.owner, longestShown);
}

/// Behind a proxy, the peer is the proxy, and only X-Forwarded-For says whose request it is; without one,
/// anybody may have written the field.
std::string addressesOf(const HTTPServerRequest& request) {
  const std::string forwarded = forwardedOf(request);
  return peerOf(request) +
         (forwarded.empty() ? "" : " (X-Forwarded-For: " + printable(forwarded, longestShown) + ")");
}

}  // namespace

/// What the viewer saw.
struct BreakRequests::Wanted {
  std::uint64_t grant = 0;
  std::string key;
  std::string owner;  ///< Empty: of an unknown client.
  std::string fence;  ///< Empty: none.
};

BreakRequests::BreakRequests(std::shared_ptr<LockDriver> store, std::shared_ptr<LockFeed> feed,
                             std::string secret, UserOf operatorOf)
    : store_(std::move(store)),
      feed_(std::move(feed)),
      secret_(std::move(secret)),
      operatorOf_(std::move(operatorOf)) {
  if (allowed() && capability<Breakable>(*store_) == nullptr)
    throw ConfigError("this store cannot break locks: leave ConsoleOptions::operatorOf empty");
}

void BreakRequests::handle(HTTPServerRequest& request, HTTPServerResponse& response) const {
  std::string who;
  std::string what = "a lock";
  const Problem outcome = decide(request, who, what);
  log(request, who, what, outcome.detail);
  if (outcome.status == HTTPResponse::HTTP_OK) {
    Poco::JSON::Object object;
    object.set("outcome", "taken");
    object.set("detail", outcome.detail);
    std::ostringstream text;
    object.stringify(text);
    return answer(request, response, "application/json", text.str());
  }
  if (outcome.status == HTTPResponse::HTTP_UNAUTHORIZED) response.set("WWW-Authenticate", "Bearer");
  if (outcome.status == HTTPResponse::HTTP_TOO_MANY_REQUESTS) {
    response.set("Retry-After", std::to_string(PasswordPauses::afterWrong.count()));
  }
  answer(request, response, outcome);
}

void BreakRequests::log(const HTTPServerRequest& request, const std::string& who, const std::string& what,
                        const std::string& detail) const {
  // Anybody may be refused as often as he likes.
  const auto leftOut =
      who.empty() ? ofOthers_.admit("refused", systemClock()->now()) : std::optional<std::size_t>(0);
  if (!leftOut) return;
  Poco::Logger::get("lockkeeper.console")
      .warning((who.empty() ? "somebody" : who) + " at " + addressesOf(request) + " asks to break " + what +
               ": " + printable(detail, longestShown) + leftOutText(*leftOut));
}

Problem BreakRequests::decide(HTTPServerRequest& request, std::string& who, std::string& what) const {
  if (!allowed()) return plainProblem(HTTPResponse::HTTP_FORBIDDEN, "This console only shows locks.");
  if (!sameOrigin(request)) {
    return plainProblem(HTTPResponse::HTTP_FORBIDDEN,
                        "The request does not come from this console's own page.");
  }
  if (!equal(request.get("X-Console-Token", ""), secret_)) {
    return plainProblem(HTTPResponse::HTTP_FORBIDDEN, "This page is out of date: reload it.");
  }
  const bool hasPassword = request.has("Authorization");
  const std::string peer = request.clientAddress().host().toString();
  if (hasPassword && !pauses_.mayTry(peer, systemClock()->now())) {
    return plainProblem(HTTPResponse::HTTP_TOO_MANY_REQUESTS,
                        "A wrong password was sent a moment ago: try again in a second.");
  }
  const std::string user = operatorOf_(request);
  if (hasPassword && !user.empty()) pauses_.wasRight(peer);
  if (user.empty()) {
    return plainProblem(HTTPResponse::HTTP_UNAUTHORIZED, "Only operators may break locks: log in.");
  }
  who = printable(user, longestShown);
  Wanted wanted;
  try {
    const Body body = readBody(request, longestOrder, longestWait);
    if (body.end != BodyEnd::whole ||
        !Poco::Net::MediaType(request.getContentType()).matches("application", "json"))
      throw Poco::DataFormatException();
    const auto object = Poco::JSON::Parser().parse(body.bytes).extract<Poco::JSON::Object::Ptr>();
    wanted = {.grant = object->getValue<std::uint64_t>("grant"),
              .key = object->getValue<std::string>("key"),
              .owner = object->optValue<std::string>("owner", ""),
              .fence = object->optValue<std::string>("fence", "")};
  } catch (const Poco::Exception&) {
    return plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                        "The body must be JSON with grant (a number), key, owner and fence (texts or null).");
  }
  what = quoted(wanted.key) + " held by " +
         (wanted.owner.empty() ? "-" : printable(wanted.owner, longestShown)) + " with fence " +
         (wanted.fence.empty() ? "-" : printable(wanted.fence, longestShown));
  try {
    return take(wanted);
  } catch (const Error& error) {
    return plainProblem(
        HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
        "The store did not answer, so the lock may or may not be broken: " + std::string(error.what()));
  }
}

Problem BreakRequests::take(const Wanted& wanted) const {
  const Problem changed = plainProblem(HTTPResponse::HTTP_CONFLICT,
                                       "The holder has changed in the meantime: nothing was broken.");
  const auto seen = feed_->grant(wanted.grant);
  if (!seen || wanted.key != feed_->shownKey(*seen) || wanted.owner != jsonText(seen->holder.owner) ||
      wanted.fence != (seen->holder.fence ? std::to_string(*seen->holder.fence) : "")) {
    return changed;
  }
  const std::vector<Holder> holders = holdersOf(*store_, seen->key, within());
  if (holders.empty()) {
    return plainProblem(HTTPResponse::HTTP_CONFLICT, "The lock is free: nothing was broken.");
  }
  const auto present =
      std::ranges::find_if(holders, [&](const Holder& each) { return sameGrant(each, seen->holder); });
  if (present == holders.end()) {
    return plainProblem(HTTPResponse::HTTP_CONFLICT, "The lock is now held by " + nameOf(holders.front()) +
                                                         " in another grant: nothing was broken.");
  }
  if (!capability<Breakable>(*store_)->breakLock(seen->key, within(), &*present)) return changed;
  feed_->broken(*seen);
  return plainProblem(HTTPResponse::HTTP_OK, "The lock was taken from its holder.");
}

}  // namespace lockkeeper::poco
