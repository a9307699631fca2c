#include "lockkeeper/poco/lock_console.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/IPAddress.h>
#include <Poco/NumberParser.h>
#include <Poco/RandomStream.h>
#include <Poco/String.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "console/activity_log.h"
#include "console/break_request.h"
#include "console/json.h"
#include "console/lock_feed.h"
#include "console_page.h"
#include "health/readiness.h"
#include "http/path/path_factory.h"
#include "http/problem.h"
#include "http/request_steps.h"
#include "http/route/request_path.h"
#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/utf8.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

constexpr std::chrono::milliseconds shortestInterval{100};
constexpr std::chrono::milliseconds longestInterval{3'600'000};

std::string randomHex() {
  std::string text;
  Poco::RandomInputStream random;
  for (int i = 0; i < 16; ++i) appendHex(text, static_cast<unsigned char>(random.get()));
  return text;
}

std::string htmlText(const std::string& text) {
  std::string escaped;
  for (const char each : jsonText(text)) {
    switch (each) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += each;
    }
  }
  return escaped;
}

bool isLoopback(std::string name) {
  if (name == "localhost") return true;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  Poco::Net::IPAddress address;
  return Poco::Net::IPAddress::tryParse(name, address) && address.isLoopback();
}

ConsoleOptions checked(ConsoleOptions options) {
  checkDuration<std::invalid_argument>("interval", options.interval, shortestInterval, longestInterval);
  checkNamespace(options.keyNamespace);
  while (options.path.ends_with('/')) options.path.pop_back();
  if (!options.path.empty() && !options.path.starts_with('/'))
    throw std::invalid_argument("path is " + quoted(options.path) + ": it must start with /");
  for (std::string& host : options.hosts) host = Poco::toLower(host);
  return options;
}

KeyScope scopeOf(const ConsoleOptions& options) {
  const std::string scope = options.keyNamespace.empty() ? "" : options.keyNamespace + ":";
  return {.prefix = scope + options.prefix, .hidden = scope.size()};
}

std::shared_ptr<LockFeed> feedOf(const std::shared_ptr<LockDriver>& store, const ConsoleOptions& options) {
  if (store == nullptr) throw std::invalid_argument("a console needs a store");
  if (capability<Browsable>(*store) == nullptr) throw ConfigError("this store cannot list its locks");
  return std::make_shared<LockFeed>(
      LockFeed::Source{.store = store, .scope = scopeOf(options), .interval = options.interval});
}

void refuse(HTTPServerRequest& request, HTTPServerResponse& response, HTTPResponse::HTTPStatus status,
            const std::string& detail) {
  answer(request, response, plainProblem(status, detail));
}

}  // namespace

/// What all requests share.
class LockConsole::Impl {
 public:
  Impl(const std::shared_ptr<LockDriver>& store, ConsoleOptions given,
       std::shared_ptr<const ActivityLog> activity)
      : options_(checked(std::move(given))),
        activity_(std::move(activity)),
        secret_(randomHex()),
        feed_(feedOf(store, options_)),
        breaking_(store, feed_, secret_, options_.operatorOf) {
    const HealthParts& parts = options_.health;
    if (parts.locks || parts.limits || parts.answers) readiness_ = std::make_unique<Readiness>(parts);
  }

  const std::string& path() const { return options_.path; }
  /// `target` is the path below path().
  void handle(const std::string& target, HTTPServerRequest& request, HTTPServerResponse& response) const;

 private:
  bool hostAllowed(const HTTPServerRequest& request) const;
  void sendPage(HTTPServerRequest& request, HTTPServerResponse& response) const;
  void sendData(const std::string& target, HTTPServerRequest& request, HTTPServerResponse& response) const;
  std::string changesAfter(const std::string& seen) const;
  std::string activityJson(const std::string& shownKey) const;
  std::string healthJson() const;

  const ConsoleOptions options_;
  const std::shared_ptr<const ActivityLog> activity_;
  std::unique_ptr<Readiness> readiness_;
  const std::string secret_;
  const std::shared_ptr<LockFeed> feed_;
  const BreakRequests breaking_;
};

bool LockConsole::Impl::hostAllowed(const HTTPServerRequest& request) const {
  const std::string host = hostOf(request);
  if (std::ranges::find(options_.hosts, host) != options_.hosts.end()) return true;
  const Poco::Net::SocketAddress server = request.serverAddress();
  const bool isLocal = server.family() != Poco::Net::SocketAddress::UNIX_LOCAL && server.host().isLoopback();
  return isLocal ? isLoopback(host) : options_.hosts.empty();
}

void LockConsole::Impl::handle(const std::string& target, HTTPServerRequest& request,
                               HTTPServerResponse& response) const {
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cache-Control", "no-store");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  if (!hostAllowed(request)) {
    return refuse(request, response, HTTPResponse::HTTP_MISDIRECTED_REQUEST,
                  "The console does not answer under this host name; ConsoleOptions::hosts lists its names.");
  }
  const std::string& method = request.getMethod();
  const bool reads = method == HTTPRequest::HTTP_GET || method == HTTPRequest::HTTP_HEAD;
  if (target == "/break") {
    if (method == HTTPRequest::HTTP_POST) return breaking_.handle(request, response);
    response.set("Allow", "POST");
  } else if (target == "/" || target.empty()) {
    if (reads && target.empty()) return response.redirect(options_.path + "/");
    if (reads) return sendPage(request, response);
    response.set("Allow", "GET, HEAD");
  } else if (target == "/state" || target == "/activity" || target == "/health") {
    if (method == HTTPRequest::HTTP_GET) return sendData(target, request, response);
    response.set("Allow", "GET");
  } else {
    return refuse(request, response, HTTPResponse::HTTP_NOT_FOUND, "There is nothing at this path.");
  }
  refuse(request, response, HTTPResponse::HTTP_METHOD_NOT_ALLOWED, "This path does not support this method.");
}

void LockConsole::Impl::sendPage(HTTPServerRequest& request, HTTPServerResponse& response) const {
  const std::string nonce = randomHex();
  std::string page(consolePage);
  Poco::replaceInPlace(page, std::string("{nonce}"), nonce);
  Poco::replaceInPlace(page, std::string("{token}"), breaking_.allowed() ? secret_ : std::string());
  Poco::replaceInPlace(page, std::string("{breaking}"), std::string(breaking_.allowed() ? "yes" : "no"));
  Poco::replaceInPlace(page, std::string("{interval}"), std::to_string(options_.interval.count()));
  Poco::replaceInPlace(page, std::string("{store}"), htmlText(options_.storeName));
  response.set("Content-Security-Policy",
               "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
                   "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'");
  answer(request, response, "text/html; charset=utf-8", page);
}

void LockConsole::Impl::sendData(const std::string& target, HTTPServerRequest& request,
                                 HTTPServerResponse& response) const {
  response.setKeepAlive(false);  // Poco's thread would wait for the next request of a page that polls
  const std::string site =
      request.get("Sec-Fetch-Site", "none");  // browsers say it: others may not ask the store
  if (site != "none" && site != "same-origin") {
    return refuse(request, response, HTTPResponse::HTTP_FORBIDDEN,
                  "Only the console's own page may ask for this.");
  }
  const auto fieldOf = [&](const char* name) { return queryField(request.getURI(), name).value_or(""); };
  const std::string text = target == "/state"    ? changesAfter(fieldOf("seen"))
                           : target == "/health" ? healthJson()
                                                 : activityJson(fieldOf("key"));
  answer(request, response, "application/json", text);
}

std::string LockConsole::Impl::changesAfter(const std::string& seen) const {
  Poco::UInt64 version = 0;
  return feed_->changesAfter(Poco::NumberParser::tryParseUnsigned64(seen, version) ? version : 0);
}

std::string LockConsole::Impl::activityJson(const std::string& shownKey) const {
  const Instant now = systemClock()->now();
  return R"({"now":)" + std::to_string(inMilliseconds(now)) + R"(,"store":)" + feed_->activity(shownKey) +
         R"(,"process":)" + (activity_ ? activity_->json(scopeOf(options_), shownKey, now) : "null") + "}";
}

std::string LockConsole::Impl::healthJson() const {
  if (!readiness_) return R"({"parts":[]})";
  const Readiness::Result result = readiness_->get();
  std::string parts;
  for (const auto& [name, up] : result.parts) {
    appendItem(parts, jsonArray({jsonString(name), up ? "1" : "0"}));
  }
  return R"({"parts":[)" + parts + R"(],"suspectLocks":)" + std::to_string(result.suspectLocks) + "}";
}

LockConsole::LockConsole(const std::shared_ptr<LockDriver>& store, ConsoleOptions options)
    : impl_(std::make_shared<Impl>(store, options, options.activity ? options.activity->log_ : nullptr)) {}

LockConsole::~LockConsole() = default;

std::unique_ptr<HTTPRequestHandlerFactory> LockConsole::wrap(
    std::unique_ptr<HTTPRequestHandlerFactory> others) {
  const auto find = [impl = impl_](const std::string& target) -> Serve {
    const std::string& path = impl->path();
    if (target != path && !target.starts_with(path + "/")) return nullptr;
    return
        [impl, below = target.substr(path.size())](HTTPServerRequest& request, HTTPServerResponse& response) {
          impl->handle(below, request, response);
        };
  };
  return serveFound(find, std::move(others));
}

}  // namespace lockkeeper::poco
