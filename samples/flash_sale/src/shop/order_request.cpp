#include "shop/order_request.h"

#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include <algorithm>
#include <vector>

#include "lockkeeper/error.h"

namespace flash_sale {
namespace {

using Poco::Dynamic::Var;

constexpr std::size_t maxBodyBytes = 16384;
constexpr std::size_t maxNameBytes = 64;
constexpr std::int64_t maxQuantity = 1'000'000;
constexpr std::size_t maxDepth = 8;

std::string readBounded(std::istream& body) {
  std::string text(maxBodyBytes + 1, '\0');
  body.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(body.gcount()));
  if (text.size() > maxBodyBytes) throw BadRequest("body", "the body is longer than 16384 bytes");
  return text;
}

Poco::JSON::Object::Ptr parseObject(const std::string& text) {
  try {
    Poco::JSON::Parser parser;
    parser.setDepth(maxDepth);
    return parser.parse(text).extract<Poco::JSON::Object::Ptr>();
  } catch (
      const Poco::SyntaxException&) {  // What Poco makes of a number beyond 64 bits; we know only one number.
    throw BadRequest("quantity", "quantity is not a number of 1 to 1000000");
  } catch (const Poco::Exception&) {
    throw BadRequest("body", "the body is not a JSON object");
  }
}

Var field(const Poco::JSON::Object& object, const std::string& name) {
  if (!object.has(name)) throw BadRequest(name, name + " is missing");
  return object.get(name);
}

std::string readName(const Poco::JSON::Object& object, const std::string& what) {
  const Var value = field(object, what);
  if (!value.isString()) throw BadRequest(what, what + " is not a string");
  auto text = value.extract<std::string>();
  if (text.empty() || text.size() > maxNameBytes) {
    throw BadRequest(what, what + " has " + std::to_string(text.size()) + " bytes: 1 to 64 are allowed");
  }
  return text;
}

std::int64_t readQuantity(const Poco::JSON::Object& object) {
  const Var value = field(object, "quantity");
  if (!value.isInteger() || value.isBoolean()) throw BadRequest("quantity", "quantity is not a whole number");
  std::int64_t number = 0;
  try {
    number = value.convert<Poco::Int64>();
  } catch (const Poco::Exception&) {  // Does not fit.
    number = maxQuantity + 1;
  }
  if (number >= 1 && number <= maxQuantity) return number;
  throw BadRequest("quantity", "quantity is " + value.toString() + ": 1 to 1000000 are allowed");
}

/// An object with no other fields than these.
Poco::JSON::Object::Ptr readObject(std::istream& body, const std::vector<std::string>& allowed) {
  auto object = parseObject(readBounded(body));
  for (const auto& key : object->getNames()) {
    if (std::ranges::find(allowed, key) != allowed.end()) continue;
    std::string names;
    for (const auto& each : allowed) {
      names += (names.empty() ? "" : &each == &allowed.back() ? " and " : ", ") + each;
    }
    throw BadRequest(key.substr(0, maxNameBytes),
                     lockkeeper::quoted(key) + " is unknown: " + names + " are allowed");
  }
  return object;
}

}  // namespace

OrderRequest OrderRequest::read(std::istream& body) {
  const auto object = readObject(body, {"sku", "quantity", "orderId"});
  return {readName(*object, "sku"), readQuantity(*object), readName(*object, "orderId")};
}

PaymentRequest PaymentRequest::read(std::istream& body) {
  const auto object = readObject(body, {"orderId", "accepted"});
  const Var accepted = field(*object, "accepted");
  if (!accepted.isBoolean()) throw BadRequest("accepted", "accepted is neither true nor false");
  return {readName(*object, "orderId"), accepted.convert<bool>()};
}

}  // namespace flash_sale
