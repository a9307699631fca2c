#include "parameters.h"

#include <libpq-fe.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include "lockkeeper/error.h"

namespace lockkeeper::libpq {
namespace {

// A file that there is not, so that the library looks for no other one.
constexpr const char* nowhere = "/dev/null/none";

// The library learned to ask for these by "system" in version 16.
std::string systemAuthorities() {
  constexpr int firstWithSystem = 160000;
  if (PQlibVersion() >= firstWithSystem) return "system";
  const char* chosen = std::getenv("SSL_CERT_FILE");
  for (const char* file : {chosen, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (file != nullptr && ::access(file, R_OK) == 0) return file;
  }
  throw ConfigError("tls=on needs a caFile: this system has no list of authorities that libpq could use");
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

std::map<std::string_view, std::string> wantedFor(const ServerLogin& login, const ServerAddress& host,
                                                  const std::string& address) {
  const bool isVerified = login.tls && login.verify;
  const bool isPrivate = isVerified || !login.socket.empty();
  const CertificateFiles& files = login.files;
  const auto orNowhere = [](const std::string& file) { return file.empty() ? std::string(nowhere) : file; };
  return {{"host", login.socket.empty() ? host.host : login.socket},
          {"hostaddr", address},
          {"port", std::to_string(host.port)},
          {"dbname", login.database},
          {"user", login.user},
          {"password", login.password},
          {"passfile", nowhere},
          {"servicefile", nowhere},
          {"application_name", "lockkeeper"},
          {"client_encoding", "UTF8"},
          {"target_session_attrs", "any"},
          {"load_balance_hosts", "disable"},
          {"connect_timeout", "0"},
          {"min_protocol_version", "3.0"},
          {"max_protocol_version", "3.0"},
          {"channel_binding", "prefer"},
          // Whoever answers in clear text must not get the password so.
          {"require_auth", isPrivate ? "password,md5,scram-sha-256,none" : "md5,scram-sha-256,none"},
          {"gssencmode", "disable"},
          {"gssdelegation", "0"},
          {"krbsrvname", "postgres"},
          {"sslmode", isVerified  ? "verify-full"
                      : login.tls ? "require"
                                  : "disable"},
          {"sslnegotiation", "postgres"},
          {"sslcompression", "0"},
          {"sslsni", "1"},
          {"sslcertmode", "allow"},
          {"sslrootcert", !isVerified            ? nowhere
                          : files.caFile.empty() ? systemAuthorities()
                                                 : files.caFile},
          {"sslcert", orNowhere(files.certFile)},
          {"sslkey", orNowhere(files.keyFile)},
          {"sslcrl", nowhere},
          {"sslcrldir", nowhere},
          {"ssl_min_protocol_version", "TLSv1.2"},
          {"ssl_max_protocol_version", "TLSv1.3"}};
}

}  // namespace

// All that the environment or a file of the user's could say otherwise, as far as the library knows it.
std::vector<std::pair<const char*, std::string>> parametersOf(const ServerLogin& login,
                                                              const ServerAddress& host,
                                                              const std::string& address) {
  const auto wanted = wantedFor(login, host, address);
  const std::unique_ptr<PQconninfoOption, FreeOptions> known(PQconndefaults());
  if (!known) throw StoreUnavailable(host.display + ": no memory is left for a connection");
  std::vector<std::pair<const char*, std::string>> parameters;
  for (const PQconninfoOption* each = known.get(); each->keyword != nullptr; ++each) {
    const auto ours = wanted.find(each->keyword);
    const char* const theirs = each->envvar != nullptr ? std::getenv(each->envvar) : nullptr;
    if (ours != wanted.end() && !ours->second.empty()) {
      parameters.emplace_back(ours->first.data(), ours->second);
    } else if (theirs != nullptr && *theirs != '\0') {
      throw ConfigError(host.display + ": the environment variable " + each->envvar +
                        " is set, which libpq obeys: only the store's URI may say how to connect");
    }
  }
  return parameters;
}

}  // namespace lockkeeper::libpq
