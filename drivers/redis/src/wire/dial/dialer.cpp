#include "wire/dial/dialer.h"

#include <utility>

#include "lockkeeper/error.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// A master of sentinels is looked up in any case: they say where it is.
HostLookup lookupOf(const RedisOptions& options, const Resolver& resolve) {
  using Poco::Net::SocketAddress;
  if (!options.unixPath.empty()) {
    return HostLookup(Location({{SocketAddress::UNIX_LOCAL, options.unixPath}}, options.host));
  }
  if (!options.sentinel) {
    if (auto known = numericLocation(options.host, options.port)) return HostLookup(*std::move(known));
  }
  return {options.host, options.port, resolve};
}

}  // namespace

Dialer::Dialer(RedisOptions options, Environment environment, DialRules rules)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      rules_(std::move(rules)),
      store_(options_.display()),
      tls_(options_.tls ? makeTlsContext({options_.caFile, options_.certFile, options_.keyFile}) : nullptr) {}

std::string Dialer::durability() const {
  const std::lock_guard guard(mutex_);
  return durability_;
}

// Tells the listener once for each start of the server and each change, outside the mutex.
void Dialer::note(const ServerFacts& facts) {
  const std::string durability = durabilityOf(facts);
  {
    const std::lock_guard guard(mutex_);
    if (durability_ == durability && notedRunId_ == facts.runId) return;
    durability_ = durability;
    notedRunId_ = facts.runId;
  }
  environment_.tell({.kind = EventKind::noted, .store = store_, .text = durability});
}

Environment silent(Environment environment) {
  environment.listener = nullptr;
  return environment;
}

Dial::Dial(Dialer& dialer, Instant now)
    : dialer_(dialer),
      lookup_(lookupOf(dialer.options_, dialer.rules_.resolve)),
      until_(saturatingAdd(now, dialer.options_.connectTimeout)),
      addressUntil_(until_) {}

bool Dial::advance(Instant now) {
  const std::string& store = dialer_.store();
  while (true) {
    ErrorCode code = ErrorCode::storeUnavailable;
    std::string fault;
    try {
      if (step(now)) return true;
      if (now < addressUntil_) return false;
      fault = timeoutText();
    } catch (const StreamBroken& broken) {
      fault = store + " cannot be reached: " + broken.what();
      // All that is seen of it when the server has refused us after the handshake.
      if (logIn_ && dialer_.tls_ && dialer_.options_.certFile.empty()) {
        fault += "; a server that asks for a client certificate needs certFile and keyFile";
      }
    } catch (const Error& error) {
      // The errors of the log-in name the store already, those of TLS do not.
      const std::string text = error.what();
      code = error.code();
      fault = text.starts_with(store) ? text : store + ": " + text;
    }
    // Another address may lead to another server, but the settings are the same for all.
    const bool another = resolved_ && address_ + 1 < lookup_.location().addresses.size() && now < until_;
    if (code != ErrorCode::storeUnavailable || !another) throwError(code, fault);
    ++address_;
    stream_.reset();
    logIn_.reset();
    shareTime(now);
  }
}

bool Dial::step(Instant now) {
  if (!resolved_) {
    if (!lookup_.done()) return false;
    if (lookup_.location().addresses.empty()) throw StreamBroken("its name has no address");
    resolved_ = true;
    shareTime(now);
  }
  if (!stream_) {
    const Location& location = lookup_.location();
    stream_ = std::make_unique<Stream>(location.host, location.addresses[address_], dialer_.tls_);
  }
  if (!logIn_) {
    if (!stream_->connect()) return false;
    logIn_.emplace(dialer_.options(), dialer_.store(), dialer_.rules_.needs);
  }
  if (!logIn_->advance(*stream_)) return false;
  dialer_.note(logIn_->facts());
  return true;
}

// An address that is silent must leave time for the next ones.
void Dial::shareTime(Instant now) {
  const std::size_t left = lookup_.location().addresses.size() - address_;
  addressUntil_ = now + (until_ - now) / static_cast<std::int64_t>(left);
}

std::string Dial::server() const {
  const Poco::Net::SocketAddress& address = lookup_.location().addresses[address_];
  if (address.family() == Poco::Net::SocketAddress::UNIX_LOCAL) return address.toString();
  return lookup_.location().host + ":" + std::to_string(address.port());
}

pollfd Dial::awaited() const {
  if (!resolved_) return {lookup_.descriptor(), POLLIN, 0};
  return logIn_ ? logIn_->awaited(*stream_) : stream_->toConnect();
}

void Dial::paused(std::chrono::nanoseconds length) {
  until_ = saturatingAdd(until_, length);
  addressUntil_ = saturatingAdd(addressUntil_, length);
}

std::string Dial::timeoutText() const {
  const char* const phase = !resolved_ || !stream_         ? "finding its address"
                            : logIn_                       ? "logging in"
                            : stream_->connectedBelowTls() ? "the TLS handshake"
                                                           : "connecting";
  return dialer_.store() + " cannot be reached: " + phase + " timed out";
}

}  // namespace lockkeeper::redis
