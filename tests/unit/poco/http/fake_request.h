#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/SocketAddress.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace lockkeeper::poco {

/// A request that no server has received. A peer that begins with / is one of a Unix socket.
class FakeRequest final : public Poco::Net::HTTPServerRequest {
 public:
  FakeRequest(const std::string& method, const std::string& target, const std::string& peer = "192.0.2.1",
              const std::string& body = "")
      : peer_(peer.starts_with('/') ? Poco::Net::SocketAddress(peer) : Poco::Net::SocketAddress(peer, 4711)),
        body_(body) {
    setMethod(method);
    setURI(target);
    if (!body.empty()) setContentLength(static_cast<std::streamsize>(body.size()));
  }

  std::istream& stream() override { return body_; }
  const Poco::Net::SocketAddress& clientAddress() const override { return peer_; }
  const Poco::Net::SocketAddress& serverAddress() const override { return peer_; }
  const Poco::Net::HTTPServerParams& serverParams() const override { throw std::logic_error("no server"); }
  Poco::Net::HTTPServerResponse& response() const override { throw std::logic_error("no server"); }
  bool secure() const override { return false; }

 private:
  Poco::Net::SocketAddress peer_;
  std::istringstream body_;
};

}  // namespace lockkeeper::poco
