#include "store/gateway.h"

#include <Poco/JSON/Stringifier.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "lockkeeper/stream/shared_poll.h"
#include "store/messages.h"

namespace lockkeeper::etcd {

namespace {

using Kind = CallFault::Kind;

/// The caller's time was over before the member had its own.
class CallerOutOfTime : public StreamBroken {
 public:
  using StreamBroken::StreamBroken;
};

std::string jsonText(const std::string& text) {
  std::ostringstream out;
  Poco::JSON::Stringifier::stringify(text, out);
  return out.str();
}

}  // namespace

/// What came of asking one member.
struct Gateway::Attempt {
  std::size_t member = 0;
  bool suspicious = true;  // without an answer; false: the caller's time was over before the member's
  std::optional<Answer> answer{};
  CallFault fault{Kind::notApplied, {}};
};

/// A log-in, and what comes of it for those who wait for it.
struct Gateway::LogIn {
  bool over = false;
  bool refused = false;
  std::string failure{};
};

/// The attempts of one call that have failed.
struct Gateway::FailedAttempts {
  std::size_t tries = 0;
  std::set<std::size_t> wronglySetUp{};  // members
};

Gateway::Gateway(EtcdOptions options, Environment environment, const Resolver& resolve)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      name_(options_.display()),
      tls_(options_.tls ? makeTlsContext({options_.caFile, options_.certFile, options_.keyFile}) : nullptr) {
  options_.check();
  // So a call that waits for a lookup in vain has another attempt, with an address that was found earlier.
  const std::chrono::milliseconds patience = options_.connectTimeout / 2;
  for (const Member& each : options_.members) {
    hosts_.push_back(std::make_unique<MemberHost>(each, patience, resolve));
  }
}

Answer Gateway::call(std::string_view path, std::string_view body, Instant deadline, Effect effect) {
  bool loggedInAgain = false;
  // No member has had a chance to answer.
  if (clock().now() >= deadline) throw StoreUnavailable(name_ + ": the time for the call is over");
  FailedAttempts failed;
  while (true) {
    const std::string token = this->token(deadline);
    Attempt last = attempt(path, body, token, deadline);
    if (last.answer) return *last.answer;
    if (last.fault.kind == Kind::logIn && !token.empty()) {
      forgetToken(token);
      if (!std::exchange(loggedInAgain, true)) continue;
      last.fault.kind = Kind::notApplied;  // the rights have changed again
      fail(last, effect);
    }
    goOn(failed, last, effect, deadline);
  }
}

// The next member is asked from now on; throws when there is nobody, or no time, left to ask.
void Gateway::goOn(FailedAttempts& failed, Attempt last, Effect effect, Instant deadline) {
  // Another member would say the same.
  if (last.fault.kind == Kind::setUp || last.fault.kind == Kind::logIn) fail(last, effect);
  if (last.suspicious) suspect(last.member);
  if (last.fault.kind == Kind::memberSetUp) {
    failed.wronglySetUp.insert(last.member);
    if (failed.wronglySetUp.size() == options_.members.size()) fail(last, effect);
  }
  const bool doubt = effect == Effect::perhaps && last.fault.kind == Kind::unknown;
  // One more than there are members: a connection that was kept may have ended meanwhile.
  if (!doubt && ++failed.tries <= options_.members.size() && clock().now() < deadline) return;
  // Not all members say that of themselves, so it is no ConfigError: one may answer later.
  if (last.fault.kind == Kind::memberSetUp) last.fault.kind = Kind::notApplied;
  fail(last, effect);
}

Gateway::Attempt Gateway::attempt(std::string_view path, std::string_view body, const std::string& token,
                                  Instant deadline) {
  Attempt result{.member = current()};
  std::unique_ptr<Connection> used;
  try {
    used = connection(result.member);
    used->post(path, fieldsFor(result.member, token), body);
    exchange(*used, deadline);
    result.answer = answerOn(*used, result.fault);
    keepIdle(std::move(used));
  } catch (const StreamBroken& broken) {
    result.suspicious = dynamic_cast<const CallerOutOfTime*>(&broken) == nullptr;
    result.fault = {used && used->sent() ? Kind::unknown : Kind::notApplied, broken.what()};
  } catch (const ConfigError& error) {
    result.fault = {Kind::memberSetUp, error.what()};
  }
  if (used && result.suspicious) used->avoidAddress();
  return result;
}

std::optional<Answer> Gateway::answerOn(Connection& connection, CallFault& fault) {
  const auto json = parsed(connection.reply().body());
  const auto found = faultOf(connection.reply().status(), json.get());
  if (found && found->kind != Kind::noLease) {
    fault = *found;
    return std::nullopt;
  }
  return Answer{.json = json, .sentAt = connection.sentAt(), .noLease = found.has_value()};
}

void Gateway::fail(const Attempt& last, Effect effect) const {
  const Member& member = options_.members[last.member];
  const std::string text =
      name_ + ": " + member.host + ":" + std::to_string(member.port) + ": " + last.fault.text;
  const Kind kind = last.fault.kind;
  if (kind == Kind::setUp || kind == Kind::memberSetUp || kind == Kind::logIn) throw ConfigError(text);
  if (kind == Kind::unknown && effect == Effect::perhaps) throw OutcomeUnknown(text);
  throw StoreUnavailable(text);
}

// Blocks until the reply is complete.
void Gateway::exchange(Connection& connection, Instant deadline) const {
  Instant since = clock().now();
  bool connected = connection.connected();
  auto own = connected ? options_.ioTimeout : options_.connectTimeout;
  Instant until = std::min(deadline, saturatingAdd(since, own));
  if (since >= deadline) throw CallerOutOfTime("the time for the call is over");
  while (!connection.advance(clock(), until)) {
    const Instant now = clock().now();
    if (!std::exchange(connected, connection.connected()) && connected) {
      since = now;
      own = options_.ioTimeout;
      until = std::min(deadline, saturatingAdd(now, own));
    }
    if (now >= until) {
      const char* const text = connected ? "no answer in time" : "no connection in time";
      if (usedItsTimeout(since, until, own)) throw StreamBroken(text);
      throw CallerOutOfTime(text);
    }
    pollfd awaited = connection.awaited();
    ::poll(&awaited, 1, pollTime(until, now));
  }
}

// Half of its time counts. With long timeouts a second does: core gives an attempt two, and would never find
// another member otherwise.
bool Gateway::usedItsTimeout(Instant since, Instant until, std::chrono::milliseconds own) {
  return until - since >= std::min<std::chrono::milliseconds>(own / 2, std::chrono::seconds{1});
}

void Gateway::suspect(std::size_t member) {
  current_.compare_exchange_strong(member, (member + 1) % options_.members.size());
}

std::string Gateway::fieldsFor(std::size_t member, const std::string& token) const {
  const Member& to = options_.members[member];
  const bool bracketed = to.host.find(':') != std::string::npos;
  std::string fields = "Host: " + (bracketed ? "[" + to.host + "]" : to.host) + ":" + std::to_string(to.port);
  // A member that is cut off from the others says so at once, and has done nothing.
  fields += "\r\nGrpc-Metadata-hasleader: true\r\n";
  if (!token.empty()) fields += "Authorization: " + token + "\r\n";
  return fields;
}

// One logs in for all who need a token meanwhile. If its time is over first, another one does.
std::string Gateway::token(Instant deadline) {
  if (options_.user.empty()) return {};
  std::unique_lock lock(mutex_);
  while (token_.empty()) {
    if (!logIn_) return logInForAll(lock, deadline);
    const auto others = logIn_;
    while (!others->over) {
      if (clock().now() >= deadline) throw StoreUnavailable(name_ + ": the time for the call is over");
      clock().wait(lock, loggedIn_, deadline);
    }
    if (others->refused) throw ConfigError(others->failure);
    if (!others->failure.empty()) throw StoreUnavailable(others->failure);
  }
  return token_;
}

// Lets go of the mutex meanwhile.
std::string Gateway::logInForAll(std::unique_lock<std::mutex>& lock, Instant deadline) {
  const auto own = logIn_ = std::make_shared<LogIn>();
  const auto end = [&] {
    lock.lock();
    own->over = true;
    logIn_.reset();
    loggedIn_.notify_all();
  };
  lock.unlock();
  std::string made;
  try {
    made = logIn(deadline);
  } catch (const std::exception& error) {
    end();
    if (clock().now() < deadline) {
      own->refused = dynamic_cast<const ConfigError*>(&error) != nullptr;
      own->failure = error.what();
    }
    throw;
  } catch (...) {
    end();
    throw;
  }
  end();
  return token_ = std::move(made);
}

std::string Gateway::logIn(Instant deadline) {
  const std::string body =
      R"({"name":)" + jsonText(options_.user) + R"(,"password":)" + jsonText(options_.password) + "}";
  FailedAttempts failed;
  while (true) {
    const Attempt last = attempt("/v3/auth/authenticate", body, {}, deadline);
    if (last.answer && last.answer->json) {
      auto made = last.answer->json->optValue<std::string>("token", "");
      const bool plain = std::all_of(made.begin(), made.end(), [](char c) { return c > ' ' && c <= '~'; });
      if (made.empty() || !plain) throw ConfigError(name_ + ": the log-in gave no token");
      return made;
    }
    goOn(failed, last, Effect::none, deadline);
  }
}

std::string Gateway::knownToken() {
  const std::lock_guard guard(mutex_);
  return token_;
}

void Gateway::forgetToken(const std::string& token) {
  const std::lock_guard guard(mutex_);
  if (token_ == token) token_.clear();
}

}  // namespace lockkeeper::etcd
