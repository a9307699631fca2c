#pragma once

#include <memory>
#include <optional>
#include <string>

#include "wire/dial/host_lookup.h"
#include "wire/dial/log_in.h"
#include "wire/dial/stream.h"

namespace lockkeeper::redis {

class Connector;

/// A connection in the making: the host's address, TCP, TLS, log-in. Never blocks, so that several may be
/// made at once by one thread. One thread at a time.
class Dial {
 public:
  /// `connector` must outlive it.
  explicit Dial(Connector& connector);

  /// Goes on as far as it can. False: once more when awaited() is there. Throws StoreUnavailable, ConfigError
  /// or ProtocolError, naming the store; nothing but the log-in has been sent then.
  bool advance();
  pollfd awaited() const;

  /// What a caller says whose time was up.
  std::string timeoutText() const;

  /// Only after advance() was true.
  std::unique_ptr<Stream> take() { return std::move(stream_); }
  const ServerFacts& facts() const { return logIn_.facts(); }

 private:
  bool step();

  Connector& connector_;
  std::optional<HostLookup> lookup_;  // none for a Unix socket
  std::unique_ptr<Stream> stream_;    // once the address is known
  bool connected_ = false;
  LogIn logIn_;
};

}  // namespace lockkeeper::redis
