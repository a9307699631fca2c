#include "lockkeeper/store_uri.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/checked_name.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper {

using std::chrono::milliseconds;

namespace {

// A URI that is written wrongly may have a part of a password anywhere: what stands behind an '@' that was
// forgotten or not encoded is a host, a path or a parameter. So nothing after the scheme is in a message
// until all hosts have been read, and an '@' after them is refused first.

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text, std::string_view what) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      throw ConfigError("the store's " + std::string(what) +
                        " has a '%' without two hexadecimal digits: write %25");
    }
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

constexpr std::string_view variableBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::string passwordFrom(std::string plain) {
  if (!plain.starts_with("${") || !plain.ends_with('}')) return plain;
  const std::string name = plain.substr(2, plain.size() - 3);
  if (name.find_first_not_of(variableBytes) != std::string::npos || name.empty()) {
    throw ConfigError("the store's password is no name of an environment variable between ${ and }");
  }
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    throw ConfigError("the store's password names the environment variable " + quoted(name) +
                      ", which is not set");
  }
  return value;
}

/// `which` is the host's place in the URI, from 1.
Endpoint endpointFrom(std::string_view text, std::size_t which) {
  Endpoint endpoint;
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = text.substr(0, at);
    const auto colon = login.find(':');
    endpoint.user = decode(login.substr(0, colon), "user name");
    if (colon != std::string_view::npos) {
      endpoint.password = passwordFrom(decode(login.substr(colon + 1), "password"));
    }
    text.remove_prefix(at + 1);
  }
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) throw ConfigError("the store's IPv6 address has no closing ']'");
    endpoint.host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
  } else {
    const auto colon = text.find(':');
    endpoint.host = decode(text.substr(0, colon), "host");
    text.remove_prefix(std::min(colon, text.size()));
  }
  if (endpoint.host.empty()) throw ConfigError("the store's URI has no host where one is needed");
  if (text.empty()) return endpoint;
  if (text.front() != ':')
    throw ConfigError("host " + std::to_string(which) +
                      " of the store's URI is followed by more than a port");
  endpoint.port = wholeNumber<std::uint16_t>(text.substr(1));
  if (endpoint.port.value_or(0) != 0) return endpoint;
  throw ConfigError("the port of host " + std::to_string(which) +
                    " of the store's URI is not a number from 1 to 65535");
}

/// Of a file with a password.
constexpr std::size_t longestLine = 4096;

constexpr std::string_view schemeBytes = "abcdefghijklmnopqrstuvwxyz0123456789+-.";

/// "redis://a, mysql+getlock://b" would otherwise be a host, or the value of a parameter.
void refuseSecond(std::string_view text) {
  for (auto at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 1)) {
    const auto before = text.find_last_not_of(schemeBytes, at - 1);
    if (before != std::string_view::npos &&
        std::string_view(",; \t").find(text[before]) != std::string_view::npos) {
      throw ConfigError("the store's URI is followed by another one: one store can be named");
    }
  }
}

bool isUri(std::string_view text) {
  const auto scheme = text.find_first_not_of(schemeBytes);
  return scheme != std::string_view::npos && scheme > 0 && text.substr(scheme).starts_with("://");
}

/// The value of a parameter may be a URI of its own, which may have a login, or the path of a file.
void refuseLaterAt(std::string_view path, std::string_view query) {
  bool refused = path.find('@') != std::string_view::npos;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(name.size() + 1, pair.size()));
    const bool isPath = name.ends_with("File") && value.starts_with('/');
    if (pair.find('@') != std::string_view::npos && !isPath && !isUri(value)) refused = true;
  }
  if (!refused) return;
  throw ConfigError(
      "the store's URI has an '@' after its hosts: write %40, and in a user name or password %2F for '/' and "
      "%3F for '?'");
}

/// How messages begin that refuse a parameter.
std::string named(std::string_view parameter) { return "the store's parameter " + quoted(parameter); }

std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const auto name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list.empty() ? "none" : list;
}

}  // namespace

StoreUri StoreUri::parse(std::string_view text) {
  StoreUri uri;
  const auto colon = text.find(':');
  const std::string_view scheme = text.substr(0, colon);
  if (colon == std::string_view::npos || scheme.empty() ||
      scheme.find_first_not_of(schemeBytes) != std::string_view::npos) {
    throw ConfigError("the store's URI does not begin with a scheme, such as memory: or redis://host:6379/0");
  }
  refuseSecond(text);
  uri.scheme_ = scheme;
  text.remove_prefix(colon + 1);
  if (text.find('#') != std::string_view::npos) throw ConfigError("the store's URI has a '#': write %23");

  const auto question = text.find('?');
  std::string_view query = question == std::string_view::npos ? "" : text.substr(question + 1);
  text = text.substr(0, question);
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    const auto slash = std::min(text.find('/'), text.size());
    std::string_view hosts = text.substr(0, slash);
    text.remove_prefix(slash);
    refuseLaterAt(text, query);
    for (bool more = !hosts.empty(); more;) {
      const auto comma = hosts.find(',');
      uri.endpoints_.push_back(endpointFrom(hosts.substr(0, comma), uri.endpoints_.size() + 1));
      more = comma != std::string_view::npos;
      if (more) hosts.remove_prefix(comma + 1);
    }
  } else {
    refuseLaterAt(text, query);
  }
  uri.path_ = decode(text, "path");

  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = pair.find('=');
    const std::string name(pair.substr(0, equals));
    if (equals == std::string_view::npos || name.empty()) {
      throw ConfigError("the store's URI has a parameter that is not written name=value");
    }
    if (!uri.parameters_.try_emplace(name, decode(pair.substr(equals + 1), "parameter " + quoted(name)))
             .second) {
      throw ConfigError(named(name) + " is given twice");
    }
  }
  return uri;
}

void StoreUri::allowOnly(std::span<const std::string_view> known) const {
  for (const auto& entry : parameters_) {
    if (std::find(known.begin(), known.end(), entry.first) != known.end()) continue;
    throw ConfigError(named(entry.first) + " is unknown: " + scheme_ + " knows " + joined(known));
  }
}

std::string StoreUri::passwordOf(const Endpoint& endpoint) const {
  const std::string password = firstLineOf("passwordFile");
  if (!parameter("passwordFile")) return endpoint.password;
  if (!endpoint.password.empty()) throw ConfigError("both a password and a passwordFile are given");
  return password;
}

std::optional<std::string> StoreUri::parameter(std::string_view name) const {
  const auto found = parameters_.find(name);
  return found == parameters_.end() ? std::nullopt : std::optional(found->second);
}

bool StoreUri::flag(std::string_view name, bool otherwise) const {
  const auto value = parameter(name);
  return value ? flagIn(name, *value) : otherwise;
}

bool StoreUri::flagIn(std::string_view name, std::string_view text) {
  if (text == "true" || text == "on") return true;
  if (text == "false" || text == "off") return false;
  throw ConfigError(named(name) + " is " + quoted(text) + ": it must be on or off");
}

std::uint64_t StoreUri::number(std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                               std::uint64_t most) const {
  const auto value = parameter(name);
  if (!value) return otherwise;
  const auto number = wholeNumber<std::uint64_t>(*value);
  if (number && *number >= least && *number <= most) return *number;
  throw ConfigError(named(name) + " is " + quoted(*value) + ": it must be a number from " +
                    std::to_string(least) + " to " + std::to_string(most));
}

milliseconds StoreUri::duration(std::string_view name, milliseconds otherwise, milliseconds least,
                                milliseconds most) const {
  const auto value = parameter(name);
  if (!value) return otherwise;
  const milliseconds length = parseDuration(named(name), *value);
  if (length >= least && length <= most) return length;
  throw ConfigError(named(name) + " is " + quoted(*value) + ": it must be " + formatDuration(least) + " to " +
                    formatDuration(most));
}

std::string StoreUri::name(std::string_view name, std::string_view otherwise, std::size_t longest) const {
  return checkedName("the " + std::string(name) + " name", parameter(name).value_or(std::string(otherwise)),
                     longest);
}

std::string StoreUri::file(std::string_view name) const {
  const auto path = parameter(name);
  if (!path) return "";
  // A directory can be opened, but not read.
  struct stat found {};
  const bool isDirectory = ::stat(path->c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  if (!isDirectory && std::ifstream(*path).good()) return *path;
  throw ConfigError(named(name) + " is " + quoted(*path) + ": this file cannot be read");
}

std::string StoreUri::firstLineOf(std::string_view name) const {
  const std::string path = file(name);
  if (path.empty()) return "";
  // Bounded: a device may give bytes for ever.
  std::array<char, longestLine + 2> line{};
  std::ifstream in(path);
  if (!in.getline(line.data(), line.size())) {
    throw ConfigError(named(name) + " is " + quoted(path) + ": its first line cannot be read");
  }
  // Whole, whatever bytes are in it; its end is counted where there is one.
  std::string text(line.data(), static_cast<std::size_t>(in.gcount() - (in.eof() ? 0 : 1)));
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

CertificateFiles StoreUri::certificateFiles(bool tls) const {
  for (const std::string_view name : {"caFile", "certFile", "keyFile"}) {
    if (!tls && parameter(name)) throw ConfigError(named(name) + " is given without tls=on");
  }
  CertificateFiles files{file("caFile"), file("certFile"), file("keyFile")};
  if (files.certFile.empty() == files.keyFile.empty()) return files;
  throw ConfigError("certFile and keyFile belong together: only one of them is given");
}

std::string StoreUri::display() const {
  std::string text = scheme_ + ":";
  if (endpoints_.empty()) return path_.empty() ? text : text + "//" + path_;
  text += "//";
  for (const Endpoint& endpoint : endpoints_) {
    if (&endpoint != &endpoints_.front()) text += ",";
    const bool ipv6 = endpoint.host.find(':') != std::string::npos;
    text += ipv6 ? "[" + endpoint.host + "]" : endpoint.host;
    if (endpoint.port) text += ":" + std::to_string(*endpoint.port);
  }
  return text + path_;
}

}  // namespace lockkeeper
