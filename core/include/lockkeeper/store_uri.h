#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// One server in a store's URI. An IPv6 address has brackets in the URI, and none here.
struct Endpoint {
  std::string user;
  std::string password;  ///< Secret: never put it, or the whole URI, in a message.
  std::string host;
  std::optional<std::uint16_t> port;
};

/// PEM files for TLS; empty where none is given.
struct CertificateFiles {
  std::string caFile;    ///< Of the authorities to trust.
  std::string certFile;  ///< Of our own certificate.
  std::string keyFile;   ///< Of its key.
};

/// The parts of a store's URI: scheme://[user[:password]@]host[:port][,…][/path][?name=value&…].
/// Percent-encoded bytes are decoded in user, password, path and values. A password may be ${NAME}, the
/// environment variable NAME.
class LOCKKEEPER_CORE_EXPORT StoreUri {
 public:
  /// Throws ConfigError that says which part is wrong, without repeating a secret.
  static StoreUri parse(std::string_view text);

  /// The part before the first colon, such as "redis".
  const std::string& scheme() const { return scheme_; }
  /// The servers, in their order.
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  /// The part after the endpoints, with its leading '/'; empty when there is none.
  const std::string& path() const { return path_; }

  /// The endpoint's password or, with the parameter passwordFile, the first line of that file. Throws
  /// ConfigError that names the file when it cannot be read, and when both are given.
  std::string passwordOf(const Endpoint& endpoint) const;

  /// Throws ConfigError that names the first parameter not in `known`, and all of `known`.
  void allowOnly(std::span<const std::string_view> known) const;
  /// The same for names in braces.
  void allowOnly(std::initializer_list<std::string_view> known) const {
    allowOnly(std::span(known.begin(), known.size()));
  }

  /// The value of `?name=value`; empty when it is not given.
  std::optional<std::string> parameter(std::string_view name) const;
  /// The parameter, or `otherwise` when it is not given. Throws ConfigError unless it is true, false, on or
  /// off.
  bool flag(std::string_view name, bool otherwise) const;
  /// Reads a text as flag() does, for a parameter that also has other values.
  static bool flagIn(std::string_view name, std::string_view text);
  /// The parameter, or `otherwise`. Throws ConfigError unless it is a whole number from `least` to `most`.
  std::uint64_t number(std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most) const;
  /// The parameter, or `otherwise`. Throws ConfigError unless it is a duration, such as 250ms or 30s, from
  /// `least` to `most`.
  std::chrono::milliseconds duration(std::string_view name, std::chrono::milliseconds otherwise,
                                     std::chrono::milliseconds least, std::chrono::milliseconds most) const;
  /// The parameter, or `otherwise`: the name of something in a database, which can stand in a statement as it
  /// is. Throws ConfigError unless it has 1 to `longest` characters of [A-Za-z0-9_]; 64 are the most.
  std::string name(std::string_view name, std::string_view otherwise, std::size_t longest) const;
  /// The parameter, which is a path; empty when it is not given. Throws ConfigError if the file cannot be
  /// read.
  std::string file(std::string_view name) const;
  /// The first line of the file(), such as a password. Throws ConfigError also when it cannot be read.
  std::string firstLineOf(std::string_view name) const;
  /// The parameters caFile, certFile and keyFile. Throws ConfigError as file() does, for a certificate
  /// without its key, for a key without its certificate and, without `tls`, for each of the three.
  CertificateFiles certificateFiles(bool tls) const;

  /// The text for messages: scheme, hosts and path; no user, password or parameters.
  std::string display() const;

 private:
  std::string scheme_;
  std::vector<Endpoint> endpoints_;
  std::string path_;
  std::map<std::string, std::string, std::less<>> parameters_;
};

}  // namespace lockkeeper
