#include "wire/dial/dial.h"

#include "lockkeeper/error.h"
#include "wire/dial/connector.h"

namespace lockkeeper::redis {

namespace {

Poco::Net::SocketAddress unixAddress(const std::string& path) {
  return Poco::Net::SocketAddress(Poco::Net::SocketAddress::UNIX_LOCAL, path);
}

}  // namespace

Dial::Dial(Connector& connector) : connector_(connector), logIn_(connector.options(), connector.store()) {}

bool Dial::advance() {
  const std::string& store = connector_.store();
  try {
    return step();
  } catch (const StreamBroken& fault) {
    throw StoreUnavailable(store + " cannot be reached: " + fault.what());
  } catch (const ConfigError& fault) {
    // What TLS has found; the errors of the log-in name the store already.
    const std::string text = fault.what();
    throw ConfigError(text.starts_with(store) ? text : store + ": " + text);
  }
}

bool Dial::step() {
  const RedisOptions& options = connector_.options();
  if (!stream_) {
    const bool tcp = options.unixPath.empty();
    if (tcp && !lookup_) lookup_.emplace(options.host, options.port);
    if (tcp && !lookup_->done()) return false;
    const auto address = tcp ? lookup_->address() : unixAddress(options.unixPath);
    stream_ = std::make_unique<Stream>(options, address, connector_.tls());
  }
  if (!connected_ && !stream_->connect()) return false;
  connected_ = true;
  if (!logIn_.advance(*stream_)) return false;
  connector_.note(logIn_.facts());
  return true;
}

pollfd Dial::awaited() const {
  if (!stream_) return {lookup_ ? lookup_->descriptor() : -1, POLLIN, 0};
  return connected_ ? logIn_.awaited(*stream_) : stream_->toConnect();
}

std::string Dial::timeoutText() const {
  const char* const phase = !stream_                       ? "finding its address"
                            : connected_                   ? "logging in"
                            : stream_->connectedBelowTls() ? "the TLS handshake"
                                                           : "connecting";
  return connector_.store() + " cannot be reached: " + phase + " timed out";
}

}  // namespace lockkeeper::redis
