#pragma once

#include <Poco/Net/HTTPServerResponse.h>

#include <functional>
#include <ostream>
#include <streambuf>
#include <string>

#include "http/idempotency/stored_answer.h"

namespace lockkeeper::poco {

/// Collects what a handler answers. A body that grows longer than the limit is sent on as it comes from then
/// on: memory is bounded, whatever the handler answers. `original` must outlive it.
class CapturedResponse final : public Poco::Net::HTTPServerResponse {
 public:
  /// `spilling` is called once, before the first byte of a body that is too long is sent on.
  CapturedResponse(Poco::Net::HTTPServerResponse& original, std::size_t mostBytes,
                   std::function<void()> spilling);

  void sendContinue() override { original_.sendContinue(); }
  std::ostream& send() override;
  void sendFile(const std::string& path, const std::string& mediaType) override;
  void sendBuffer(const void* buffer, std::size_t length) override;
  void redirect(const std::string& uri, HTTPStatus status) override;
  void requireAuthentication(const std::string& realm) override;
  bool sent() const override { return sent_; }

  /// The body was too long; the answer is on its way already.
  bool spilled() const { return body_.out != nullptr; }

  /// What was collected. Only when not spilled.
  StoredAnswer answer(std::string fingerprint) const;

 private:
  class Buffer final : public std::streambuf {
   public:
    explicit Buffer(CapturedResponse& owner) : owner_(owner) {}

    std::string bytes;
    std::ostream* out = nullptr;  // once spilled

   private:
    std::streamsize xsputn(const char* from, std::streamsize count) override;
    int_type overflow(int_type byte) override;
    int sync() override;

    CapturedResponse& owner_;
  };

  void spill();

  Poco::Net::HTTPServerResponse& original_;
  const std::size_t mostBytes_;
  const std::function<void()> spilling_;
  bool sent_ = false;
  Buffer body_;
  std::ostream stream_;
};

}  // namespace lockkeeper::poco
