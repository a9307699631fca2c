#include "lockkeeper/poco/lock_console.h"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/IPAddress.h>
#include <Poco/Net/StreamSocket.h>
#include <Poco/RandomStream.h>
#include <Poco/String.h>
#include <Poco/URI.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "console/activity_log.h"
#include "console/break_request.h"
#include "console/json.h"
#include "console/lock_feed.h"
#include "console_page.h"
#include "health/readiness.h"
#include "http/problem.h"
#include "http/request_body.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/hex.h"
#include "lockkeeper/internal/utf8.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPRequestHandler;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

constexpr std::chrono::milliseconds shortestInterval{100};
constexpr std::chrono::milliseconds longestInterval{3'600'000};
constexpr std::chrono::milliseconds shortestView{1'000};
constexpr std::chrono::milliseconds longestView{86'400'000};
constexpr std::size_t mostViewersOfAll = 1'000;
constexpr std::chrono::seconds heartbeat{5};
constexpr Poco::Timespan::TimeDiff sendSeconds = 10;

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

std::string withoutPort(const std::string& host) {
  const auto colon = host.rfind(':');
  const bool address = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  return Poco::toLower(address ? host.substr(0, colon) : host);
}

bool isLoopback(std::string name) {
  if (name == "localhost") return true;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  Poco::Net::IPAddress address;
  return Poco::Net::IPAddress::tryParse(name, address) && address.isLoopback();
}

ConsoleOptions checked(ConsoleOptions options) {
  checkDuration<std::invalid_argument>("interval", options.interval, shortestInterval, longestInterval);
  checkDuration<std::invalid_argument>("viewFor", options.viewFor, shortestView, longestView);
  checkNamespace(options.keyNamespace);
  if (options.mostViewers < 1 || options.mostViewers > mostViewersOfAll) {
    throw std::invalid_argument("mostViewers is " + std::to_string(options.mostViewers) +
                                ": it must be 1 to " + std::to_string(mostViewersOfAll));
  }
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
  return std::make_shared<LockFeed>(LockFeed::Source{.store = store,
                                                     .scope = scopeOf(options),
                                                     .interval = options.interval,
                                                     .mostViewers = options.mostViewers});
}

void refuse(HTTPServerRequest& request, HTTPServerResponse& response, HTTPResponse::HTTPStatus status,
            const std::string& detail) {
  answer(request, response, {status, "about:blank", HTTPResponse::getReasonForStatus(status), detail});
}

/// The key whose timeline a request wants; empty: none.
std::string keyIn(const HTTPServerRequest& request) {
  try {
    for (const auto& [name, value] : Poco::URI(request.getURI()).getQueryParameters()) {
      if (name == "key") return value;
    }
  } catch (const Poco::Exception&) {  // no URI: no key
  }
  return "";
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
  void stop() { feed_->stop(); }
  /// `target` is the path below path().
  void handle(const std::string& target, HTTPServerRequest& request, HTTPServerResponse& response) const;

 private:
  bool hostAllowed(const HTTPServerRequest& request) const;
  void sendPage(HTTPServerRequest& request, HTTPServerResponse& response) const;
  void sendData(const std::string& target, HTTPServerRequest& request, HTTPServerResponse& response) const;
  void sendEvents(HTTPServerRequest& request, HTTPServerResponse& response) const;
  std::string activityJson(const std::string& shownKey) const;
  std::string healthJson() const;

  const ConsoleOptions options_;
  const std::shared_ptr<const ActivityLog> activity_;
  std::unique_ptr<Readiness> readiness_;
  const std::string secret_;
  const std::shared_ptr<LockFeed> feed_;
  const BreakRequests breaking_;
};

namespace {

class ConsoleFactory final : public HTTPRequestHandlerFactory {
 public:
  using Serve = std::function<void(const std::string&, HTTPServerRequest&, HTTPServerResponse&)>;

  ConsoleFactory(std::string path, Serve serve, std::unique_ptr<HTTPRequestHandlerFactory> others)
      : path_(std::move(path)), serve_(std::move(serve)), others_(std::move(others)) {}

  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    const std::string& uri = request.getURI();
    const std::string target = uri.substr(0, uri.find('?'));
    const bool ours = target == path_ || target.starts_with(path_ + "/");
    if (!ours && others_) return others_->createRequestHandler(request);
    return new Handler(serve_, ours ? target.substr(path_.size()) : "/-");
  }

 private:
  class Handler final : public HTTPRequestHandler {
   public:
    Handler(Serve serve, std::string target) : serve_(std::move(serve)), target_(std::move(target)) {}
    void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
      serve_(target_, request, response);
    }

   private:
    const Serve serve_;
    const std::string target_;
  };

  const std::string path_;
  const Serve serve_;
  const std::unique_ptr<HTTPRequestHandlerFactory> others_;
};

}  // namespace

bool LockConsole::Impl::hostAllowed(const HTTPServerRequest& request) const {
  const std::string host = withoutPort(request.get("Host", ""));
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
  } else if (target == "/events" || target == "/activity" || target == "/health") {
    if (method == HTTPRequest::HTTP_GET) return sendData(target, request, response);
    response.set("Allow", "GET");
  } else {
    return refuse(request, response, HTTPResponse::HTTP_NOT_FOUND, "There is nothing at this path.");
  }
  refuse(request, response, HTTPResponse::HTTP_METHOD_NOT_ALLOWED, "This path does not support this method.");
}

void LockConsole::Impl::sendPage(HTTPServerRequest& /*request*/, HTTPServerResponse& response) const {
  const std::string nonce = randomHex();
  std::string page(consolePage);
  Poco::replaceInPlace(page, std::string("{nonce}"), nonce);
  Poco::replaceInPlace(page, std::string("{token}"), breaking_.allowed() ? secret_ : std::string());
  Poco::replaceInPlace(page, std::string("{breaking}"), std::string(breaking_.allowed() ? "yes" : "no"));
  Poco::replaceInPlace(page, std::string("{store}"), htmlText(options_.storeName));
  response.set("Content-Security-Policy",
               "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
                   "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'");
  response.setContentType("text/html; charset=utf-8");
  response.sendBuffer(page.data(), page.size());  // to HEAD, without the body
}

void LockConsole::Impl::sendData(const std::string& target, HTTPServerRequest& request,
                                 HTTPServerResponse& response) const {
  const std::string site =
      request.get("Sec-Fetch-Site", "none");  // browsers say it: others may not take places
  if (site != "none" && site != "same-origin") {
    return refuse(request, response, HTTPResponse::HTTP_FORBIDDEN,
                  "Only the console's own page may ask for this.");
  }
  if (target == "/events") return sendEvents(request, response);
  const std::string text = target == "/health" ? healthJson() : activityJson(keyIn(request));
  response.setContentType("application/json");
  response.sendBuffer(text.data(), text.size());
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
    appendItem(parts, "[" + jsonString(name) + "," + (up ? "1" : "0") + "]");
  }
  return R"({"parts":[)" + parts + R"(],"suspectLocks":)" + std::to_string(result.suspectLocks) + "}";
}

void LockConsole::Impl::sendEvents(HTTPServerRequest& request, HTTPServerResponse& response) const {
  if (!feed_->enter()) {
    response.set("Retry-After", "5");
    return refuse(request, response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
                  "The console has no room for more viewers. Try again later.");
  }
  struct Place {
    LockFeed& feed;
    ~Place() { feed.leave(); }
  } const place{*feed_};
  // A viewer who does not read is given up.
  if (auto* socket = socketOf(request)) socket->setSendTimeout(Poco::Timespan(sendSeconds, 0));
  response.setKeepAlive(false);
  response.setChunkedTransferEncoding(true);
  response.setContentType("text/event-stream");
  std::ostream& out = response.send();
  out << "retry: 1000\n\n" << std::flush;
  const auto clock = systemClock();
  const Instant end = saturatingAdd(clock->now(), options_.viewFor);
  for (std::uint64_t seen = 0; out.good() && !feed_->stopped() && clock->now() < end;) {
    const LockFeed::Update update = feed_->next(seen, std::min(end, saturatingAdd(clock->now(), heartbeat)));
    seen = update.version;
    if (update.text.empty()) out << ":\n\n";  // notices who has gone
    for (std::size_t begin = 0; begin < update.text.size();) {
      const std::size_t newline = update.text.find('\n', begin);
      out << "data: " << std::string_view(update.text).substr(begin, newline - begin) << "\n\n";
      begin = newline + 1;
    }
    out.flush();
  }
}

LockConsole::LockConsole(const std::shared_ptr<LockDriver>& store, ConsoleOptions options)
    : impl_(std::make_shared<Impl>(store, options, options.activity ? options.activity->log_ : nullptr)) {}

LockConsole::~LockConsole() { stop(); }

std::unique_ptr<HTTPRequestHandlerFactory> LockConsole::wrap(
    std::unique_ptr<HTTPRequestHandlerFactory> others) {
  return std::make_unique<ConsoleFactory>(
      impl_->path(),
      [impl = impl_](const std::string& target, HTTPServerRequest& request, HTTPServerResponse& response) {
        impl->handle(target, request, response);
      },
      std::move(others));
}

void LockConsole::stop() { impl_->stop(); }

}  // namespace lockkeeper::poco
