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

/// A body, read as JSON.
struct JsonBody {
  Poco::JSON::Object::Ptr object{};  ///< Null when it is not a JSON object.
  bool repeats = false;              ///< A member of the object is there twice.
};

/// What keys are made from. All that is referred to must outlive it.
struct RequestFacts {
  const Poco::Net::HTTPServerRequest& request;
  const std::vector<std::string>& path;
  const ClientAddress& address;
  const UserOf& user;
  JsonBody json{};  ///< Empty when the body was not needed.
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

  /// False where a handler may read another value than this, so that no key may be made of it: a number of
  /// JSON that is not written as an integer (one program rounds 7.00001 to 7, another does not), and a member
  /// that is there twice (one program takes the first, another the last).
  bool isClear(const RequestFacts& facts) const;

  /// Whether it tells nobody apart.
  bool isEverybody() const { return kind_ == Kind::all; }

  /// The limit's key for a request: 1 to 64 bytes. What is long or could pass for something else is hashed,
  /// and so are headers and cookies, unless the form says otherwise: stores, logs and whoever lists keys see
  /// no credentials. Requests without the value, or with one that has no normal form, share one key, so that
  /// nobody escapes by leaving it out; so do those of an empty user.
  std::string keyFor(const RequestFacts& facts) const;

  /// The same as a part of a longer key: one that contains `mark`, which stands between the parts, is hashed,
  /// so that two keys with the same parts in sum are not one.
  std::string partFor(const RequestFacts& facts, char mark) const;

  /// The same for a request that says whose it is; empty for one without the value, or with an empty one:
  /// such requests have nothing in common.
  std::optional<std::string> clientIn(const RequestFacts& facts) const;

 private:
  enum class Kind { all, address, user, header, cookie, query, json, path };

  std::optional<std::string> valueIn(const RequestFacts& facts) const;
  std::optional<std::string> writtenIn(const RequestFacts& facts) const;
  std::string keyOf(const std::string& value) const;

  Kind kind_ = Kind::all;
  std::string text_;
  std::string name_;
  NormalForm form_;
  std::size_t position_ = 0;  // of the path's segment
};

JsonBody parseJson(const std::string& body);

}  // namespace lockkeeper::poco
