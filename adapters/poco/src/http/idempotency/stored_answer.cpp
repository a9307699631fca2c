#include "http/idempotency/stored_answer.h"

#include <Poco/BinaryReader.h>
#include <Poco/BinaryWriter.h>
#include <Poco/String.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

using Poco::BinaryReader;
using Poco::BinaryWriter;
using Poco::Net::HTTPResponse;

// The form of the bytes. Another form needs another number.
constexpr Poco::UInt8 form = 1;
constexpr std::size_t fingerprintBytes = 64;

// Of the connection (RFC 9110, 7.6.1), or made anew with each answer.
constexpr std::array notOwn{"Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade",
                            "Trailer",    "Date",       "Content-Length"};

bool hasBody(HTTPResponse::HTTPStatus status) {
  return status >= HTTPResponse::HTTP_OK && status != HTTPResponse::HTTP_NO_CONTENT &&
         status != HTTPResponse::HTTP_NOT_MODIFIED;
}

}  // namespace

std::string StoredAnswer::encode() const {
  std::ostringstream stream;
  BinaryWriter writer(stream, BinaryWriter::NETWORK_BYTE_ORDER);
  writer << form;
  writer.writeRaw(fingerprint);
  writer << whole << static_cast<Poco::UInt16>(status) << reason << static_cast<Poco::UInt32>(fields.size());
  for (const auto& [name, value] : fields) writer << name << value;
  writer.writeRaw(body);
  writer.flush();
  return stream.str();
}

StoredAnswer StoredAnswer::decode(const std::string& bytes) {
  StoredAnswer answer;
  std::istringstream stream(bytes);
  BinaryReader reader(stream, BinaryReader::NETWORK_BYTE_ORDER);
  Poco::UInt8 found = 0;
  Poco::UInt16 status = 0;
  Poco::UInt32 count = 0;
  reader >> found;
  if (found == form) {
    reader.readRaw(fingerprintBytes, answer.fingerprint);
    reader >> answer.whole >> status >> answer.reason >> count;
    for (; count > 0 && reader.good(); --count) {
      auto& [name, value] = answer.fields.emplace_back();
      reader >> name >> value;
    }
  }
  if (found != form || !reader.good()) {
    throw ProtocolError("an answer was kept in a form that this program does not know");
  }
  answer.status = static_cast<HTTPResponse::HTTPStatus>(status);
  answer.body = bytes.substr(static_cast<std::size_t>(stream.tellg()));
  return answer;
}

std::vector<std::pair<std::string, std::string>> ownFields(const HTTPResponse& response) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& field : response) {
    const bool own = std::ranges::none_of(
        notOwn, [&](const char* other) { return Poco::icompare(field.first, other) == 0; });
    if (own) fields.emplace_back(field.first, field.second);
  }
  return fields;
}

void setHead(Poco::Net::HTTPServerResponse& response, const StoredAnswer& answer) {
  response.setStatusAndReason(answer.status, answer.reason);
  for (const auto& field : answer.fields) response.erase(field.first);
  for (const auto& [name, value] : answer.fields) response.add(name, value);
}

void send(Poco::Net::HTTPServerResponse& response, const StoredAnswer& answer) {
  setHead(response, answer);
  if (hasBody(answer.status)) return response.sendBuffer(answer.body.data(), answer.body.size());
  response.send().flush();
}

}  // namespace lockkeeper::poco
