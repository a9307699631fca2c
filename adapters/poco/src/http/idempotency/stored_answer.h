#pragma once

#include <Poco/Net/HTTPServerResponse.h>

#include <string>
#include <utility>
#include <vector>

namespace lockkeeper::poco {

/// What a handler has answered, and to which request.
struct StoredAnswer {
  std::string fingerprint;
  Poco::Net::HTTPResponse::HTTPStatus status = Poco::Net::HTTPResponse::HTTP_OK;
  bool whole = true;  ///< False: too long to be kept; there are no fields and no body then.
  std::string reason{};
  std::vector<std::pair<std::string, std::string>> fields{};  ///< Without those of the connection.
  std::string body{};

  std::string encode() const;
  /// Throws ProtocolError for what encode() has not made.
  static StoredAnswer decode(const std::string& bytes);
};

/// The fields that belong to the answer, whichever connection carries it and when.
std::vector<std::pair<std::string, std::string>> ownFields(const Poco::Net::HTTPResponse& response);

/// Sets status and fields, in place of fields of the same names.
void setHead(Poco::Net::HTTPServerResponse& response, const StoredAnswer& answer);

void send(Poco::Net::HTTPServerResponse& response, const StoredAnswer& answer);

}  // namespace lockkeeper::poco
