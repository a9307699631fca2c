#include "store/call_fault.h"

#include <algorithm>

namespace lockkeeper::etcd {

namespace {

using Kind = CallFault::Kind;

// gRPC's codes, which the gateway repeats.
enum Code {
  invalidArgument = 3,
  notFound = 5,
  permissionDenied = 7,
  resourceExhausted = 8,
  failedPrecondition = 9,
  unimplemented = 12,
  unavailable = 14,
  unauthenticated = 16,
};

// One line, and not too long for a log.
std::string shown(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  if (text.size() > 200) text.resize(200);
  return text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// By a member that is not ready. One that has just joined does not know its cluster's version yet: it is
// "not capable".
bool refusedForNow(const std::string& text) {
  return has(text, "no leader") || has(text, "not leader") || has(text, "not capable");
}

Kind kindOf(int code, const std::string& text) {
  switch (code) {
    case unauthenticated:
      return Kind::logIn;
    case invalidArgument:
      // The rights have changed since the log-in.
      return has(text, "revision of auth store") ? Kind::logIn : Kind::setUp;
    case notFound:
      return has(text, "lease not found") ? Kind::noLease : Kind::memberSetUp;
    case unimplemented:
      return Kind::memberSetUp;
    case permissionDenied:
      return Kind::setUp;
    case failedPrecondition:
      return refusedForNow(text) ? Kind::notApplied : Kind::setUp;
    case resourceExhausted:
      // Refused before it is proposed to the cluster. Any other text is not proof of that: "database space
      // exceeded" is also what the member says that has applied a write which has filled the database, and a
      // reply that is too large comes after the deed.
      return has(text, "too many requests") ? Kind::notApplied : Kind::unknown;
    case unavailable:
      // Any other text may also be that of a request which timed out on its way through the cluster.
      return refusedForNow(text) ? Kind::notApplied : Kind::unknown;
    default:
      return Kind::unknown;
  }
}

}  // namespace

std::optional<CallFault> faultOf(int status, const Poco::JSON::Object* json) {
  if (json == nullptr) {
    if (status == 404) {
      return CallFault{
          Kind::memberSetUp,
          "there is no JSON gateway of etcd: etcd 3.4 or later with --enable-grpc-gateway is needed"};
    }
    return CallFault{Kind::unknown, "the reply, of HTTP status " + std::to_string(status) + ", is no JSON"};
  }
  // A stream puts its error inside an object, with names of its own.
  const auto inner = json->getObject("error");
  if (status == 200 && !json->has("error")) return std::nullopt;
  const Poco::JSON::Object& error = inner ? *inner : *json;
  const int code = error.optValue(inner && error.has("grpc_code") ? "grpc_code" : "code", 0);
  std::string text = error.optValue<std::string>("message", "");
  if (text.empty() && !inner) text = error.optValue<std::string>("error", "");
  const Kind kind = kindOf(code, text);
  return CallFault{kind, shown(std::move(text))};
}

}  // namespace lockkeeper::etcd
