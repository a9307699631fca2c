#include "message.h"

#include <Poco/JSON/Parser.h>
#include <Poco/RegularExpression.h>
#include <Poco/UUIDGenerator.h>

#include <sstream>
#include <string_view>

namespace sms_gateway {
namespace {

constexpr std::size_t longestPhone = 40;
constexpr std::size_t longestText = 640;
constexpr std::size_t deepestJson = 4;

std::string field(const Poco::JSON::Object& object, const std::string& name, std::size_t longest) {
  const Poco::Dynamic::Var value = object.get(name);
  if (!value.isString()) throw BadRequest(name + " is missing, or is not a string");
  auto text = value.extract<std::string>();
  if (text.empty() || text.size() > longest) {
    throw BadRequest(name + " has " + std::to_string(text.size()) + " bytes: 1 to " +
                     std::to_string(longest) + " are allowed");
  }
  return text;
}

/// In the one spelling that the limit per phone number counts: as the setting "json phone | e164" makes it.
std::string phoneNumber(const Poco::JSON::Object& object) {
  static const Poco::RegularExpression international(R"(^\+[1-9][0-9]{1,14}$)");
  std::string phone = field(object, "phone", longestPhone);
  std::erase_if(phone, [](char c) { return std::string_view(" -./()").find(c) != std::string_view::npos; });
  if (phone.starts_with("00")) phone.replace(0, 2, "+");
  if (international.match(phone)) return phone;
  throw BadRequest("phone is not a number in international form, such as +49 30 123456 or 004930123456");
}

}  // namespace

// The filter has refused bodies that are too long.
Message Message::read(std::istream& body) {
  Poco::JSON::Object::Ptr object;
  try {
    Poco::JSON::Parser parser;
    parser.setDepth(deepestJson);
    object = parser.parse(body).extract<Poco::JSON::Object::Ptr>();
  } catch (const Poco::Exception&) {
    throw BadRequest("the body is not a JSON object");
  }
  return {.id = Poco::UUIDGenerator::defaultGenerator().createRandom().toString(),
          .phone = phoneNumber(*object),
          .text = field(*object, "text", longestText)};
}

std::string toJson(const Message& message) {
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("id", message.id);
  object.set("phone", message.phone);
  object.set("text", message.text);
  std::ostringstream text;
  object.stringify(text);
  return text.str();
}

}  // namespace sms_gateway
