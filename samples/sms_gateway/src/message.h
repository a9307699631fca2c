#pragma once

#include <Poco/JSON/Object.h>

#include <istream>
#include <stdexcept>
#include <string>

namespace sms_gateway {

/// A short message that was accepted.
struct Message {
  std::string id;
  std::string phone;
  std::string text;

  /// Reads the body of POST /sms, {"phone":…,"text":…}, and gives it an id. Throws BadRequest.
  static Message read(std::istream& body);
};

/// A message on its way to be sent: the `delivery`-th attempt at it. From the second on, somebody may have
/// sent it before and died.
struct Job {
  Message message;
  int delivery = 1;
  std::string ticket{};  ///< What the queue knows it by.
};

/// What is wrong with a request.
class BadRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// {"id":…,"phone":…,"text":…}
std::string toJson(const Message& message);

}  // namespace sms_gateway
