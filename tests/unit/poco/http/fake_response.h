#pragma once

#include <Poco/Net/HTTPServerResponse.h>

#include <sstream>
#include <string>

namespace lockkeeper::poco {

/// A response that goes nowhere.
class FakeResponse final : public Poco::Net::HTTPServerResponse {
 public:
  void sendContinue() override {}
  std::ostream& send() override {
    sent_ = true;
    return body_;
  }
  void sendFile(const std::string&, const std::string&) override { sent_ = true; }
  void sendBuffer(const void* buffer, std::size_t length) override {
    send().write(static_cast<const char*>(buffer), static_cast<std::streamsize>(length));
  }
  void redirect(const std::string&, HTTPStatus) override { sent_ = true; }
  void requireAuthentication(const std::string&) override {}
  bool sent() const override { return sent_; }

 private:
  bool sent_ = false;
  std::ostringstream body_;
};

}  // namespace lockkeeper::poco
