#include "http/route/key_source.h"

#include <Poco/JSON/ParseHandler.h>
#include <Poco/JSON/Parser.h>
#include <Poco/Net/NameValueCollection.h>
#include <Poco/SHA2Engine.h>
#include <Poco/String.h>

#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "http/route/request_path.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

using Poco::Net::NameValueCollection;

constexpr std::size_t longestPlainKey = 64;
constexpr std::size_t deepestJson = 16;
// Plain keys do not begin with it.
constexpr char special = '#';
constexpr auto everybody = "#all";

bool isPlain(const std::string& value) {
  return !value.empty() && value.size() <= longestPlainKey && value.front() != special &&
         value.find(reservedMark) == std::string::npos;
}

std::string hashed(const std::string& value) {
  Poco::SHA2Engine hash;
  hash.update(value);
  // Half of the digest: nobody finds two values for 128 bits.
  return special + Poco::DigestEngine::digestToHex(hash.digest()).substr(0, 32);
}

std::optional<std::string> find(const NameValueCollection& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> cookie(const Poco::Net::HTTPRequest& request, const std::string& name) {
  NameValueCollection cookies;
  request.getCookies(cookies);
  return find(cookies, name);
}

std::optional<std::string> jsonField(const JsonBody& json, const std::string& name) {
  if (!json.object) return std::nullopt;
  const Poco::Dynamic::Var value = json.object->get(name);
  if (!value.isString() && (!value.isInteger() || value.isBoolean())) return std::nullopt;
  return value.toString();  // 7 and "7" are one key: handlers may take both
}

/// Notes whether a member of the outermost object is there twice.
class RepetitionHandler final : public Poco::JSON::ParseHandler {
 public:
  bool repeats() const { return repeats_; }

 private:
  void startObject() override {
    ++depth_;
    ParseHandler::startObject();
  }
  void endObject() override {
    --depth_;
    ParseHandler::endObject();
  }
  void startArray() override {
    ++depth_;
    ParseHandler::startArray();
  }
  void endArray() override {
    --depth_;
    ParseHandler::endArray();
  }
  void key(const std::string& name) override {
    if (depth_ == 1 && !names_.insert(name).second) repeats_ = true;
    ParseHandler::key(name);
  }

  std::size_t depth_ = 0;
  std::set<std::string> names_;
  bool repeats_ = false;
};

}  // namespace

KeySource KeySource::parse(const std::string& what, const std::string& written, const RoutePattern& pattern,
                           const UserOf& user) {
  const auto bar = written.find('|');
  const std::string text = bar == written.npos ? written : Poco::trimRight(written.substr(0, bar));
  using Kinds = std::map<std::string, Kind>;
  static const Kinds& plain =
      *new Kinds{{"all", Kind::all}, {"address", Kind::address}, {"user", Kind::user}};
  static const Kinds& named = *new Kinds{{"header", Kind::header},
                                         {"cookie", Kind::cookie},
                                         {"query", Kind::query},
                                         {"json", Kind::json},
                                         {"path", Kind::path}};
  const auto space = text.find(' ');
  const bool hasName = space != std::string::npos && space + 1 < text.size();
  const auto& kinds = hasName ? named : plain;
  const auto kind = kinds.find(text.substr(0, space));
  if (kind == kinds.end()) {
    throw std::invalid_argument(
        what + " is " + quoted(text) +
        ": all, address, user, header NAME, cookie NAME, query NAME, json NAME or path NAME "
        "are allowed");
  }
  KeySource source;
  source.kind_ = kind->second;
  source.text_ = text;
  if (hasName) source.name_ = text.substr(space + 1);
  if (bar != written.npos) {
    if (!hasName) {
      throw std::invalid_argument(what + " is " + quoted(written) +
                                  ": only header, cookie, query, json and path have a value to bring into "
                                  "another form");
    }
    source.form_ = NormalForm::parse(what, written.substr(bar + 1));
  }
  if (source.kind_ == Kind::path) {
    const auto position = pattern.position(source.name_);
    if (!position)
      throw std::invalid_argument(what + " is " + quoted(text) + ", which the route's match does not name");
    source.position_ = *position;
  }
  if (source.kind_ == Kind::user && !user) {
    throw std::invalid_argument(what + " is \"user\", but the application does not tell who its users are");
  }
  return source;
}

bool KeySource::isClear(const RequestFacts& facts) const {
  if (kind_ != Kind::json || !facts.json.object) return true;
  const Poco::Dynamic::Var value = facts.json.object->get(name_);
  const bool isNumber = value.isNumeric() && !value.isString() && !value.isBoolean();
  return !facts.json.repeats && (!isNumber || value.isInteger());
}

std::string KeySource::keyFor(const RequestFacts& facts) const {
  if (kind_ == Kind::all) return everybody;
  const auto value = valueIn(facts);
  return value ? keyOf(*value) : "#none";
}

std::string KeySource::partFor(const RequestFacts& facts, char mark) const {
  std::string key = keyFor(facts);
  return key.find(mark) == std::string::npos ? key : hashed(key);
}

std::optional<std::string> KeySource::clientIn(const RequestFacts& facts) const {
  if (kind_ == Kind::all) return everybody;
  const auto value = valueIn(facts);
  return value && !value->empty() ? std::optional(keyOf(*value)) : std::nullopt;
}

std::string KeySource::keyOf(const std::string& value) const {
  const bool mayBeCredential = kind_ == Kind::header || kind_ == Kind::cookie;
  return form_.hashed().value_or(mayBeCredential) || !isPlain(value) ? hashed(value) : value;
}

std::optional<std::string> KeySource::valueIn(const RequestFacts& facts) const {
  auto value = writtenIn(facts);
  return value ? form_.of(std::move(*value)) : std::nullopt;
}

std::optional<std::string> KeySource::writtenIn(const RequestFacts& facts) const {
  switch (kind_) {
    case Kind::address:
      return facts.address.of(facts.request);
    case Kind::user: {
      std::string user = facts.user(facts.request);
      return user.empty() ? std::nullopt : std::optional(std::move(user));
    }
    case Kind::header:
      return find(facts.request, name_);
    case Kind::cookie:
      return cookie(facts.request, name_);
    case Kind::query:
      return queryField(facts.request.getURI(), name_);
    case Kind::json:
      return jsonField(facts.json, name_);
    case Kind::path:
      return facts.path.at(position_);
    case Kind::all:
      break;
  }
  return std::nullopt;
}

JsonBody parseJson(const std::string& body) {
  try {
    const Poco::SharedPtr<RepetitionHandler> handler(new RepetitionHandler);
    Poco::JSON::Parser parser(handler);
    parser.setDepth(deepestJson);
    auto object = parser.parse(body).extract<Poco::JSON::Object::Ptr>();
    return {.object = std::move(object), .repeats = handler->repeats()};
  } catch (const Poco::Exception&) {
    return {};
  }
}

}  // namespace lockkeeper::poco
