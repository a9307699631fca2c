#pragma once

#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPServerRequest.h>

#include <optional>
#include <string>
#include <vector>

#include "http/route/client_address.h"
#include "http/route/normal_form.h"
#include "http/route/route_pattern.h"
#include "lockkeeper/poco/client_options.h"

namespace lockkeeper::poco {

/// What keys are made from. All that is referred to must outlive it.
struct RequestFacts {
  const Poco::Net::HTTPServerRequest& request;
  const std::vector<std::string>& path;
  const ClientAddress& address;
  const UserOf& user;
  Poco::JSON::Object::Ptr json{};  ///< Null when the body was not needed, or is not a JSON object.
};

/// By what a limit counts: "all" for everybody together, "address", "user", or "header NAME", "cookie NAME",
/// "query NAME", "json NAME" (a field of the body), "path NAME" (a {NAME} of the route's pattern). These five
/// may be followed by a NormalForm: "json phone | e164", "header X-Tenant | lower | plain".
class KeySource {
 public:
  /// Throws std::invalid_argument that names the setting `what` for anything else, for a {NAME} that
  /// `pattern` has not, and for "user" when `user` is empty.
  static KeySource parse(const std::string& what, const std::string& text, const RoutePattern& pattern,
                         const UserOf& user);

  /// As it was written, without forms: "json phone".
  const std::string& text() const { return text_; }

  bool needsBody() const { return kind_ == Kind::json; }

  /// The limit's key for a request: 1 to 64 bytes. What is long or could pass for something else is hashed,
  /// and so are headers and cookies, unless the form says otherwise: stores, logs and whoever lists keys see
  /// no credentials. Requests without the value, or with one that has no normal form, share one key, so that
  /// nobody escapes by leaving it out.
  std::string keyFor(const RequestFacts& facts) const;

 private:
  enum class Kind { all, address, user, header, cookie, query, json, path };

  std::optional<std::string> valueIn(const RequestFacts& facts) const;

  Kind kind_ = Kind::all;
  std::string text_;
  std::string name_;
  NormalForm form_;
  std::size_t position_ = 0;  // of the path's segment
};

/// The body as a JSON object; null when it is none.
Poco::JSON::Object::Ptr parseJson(const std::string& body);

}  // namespace lockkeeper::poco
