#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Channel.h>
#include <Poco/Logger.h>
#include <Poco/Message.h>

#include <mutex>
#include <string>

namespace lockkeeper::test {

/// What is written to a logger, while it lives.
class CapturedLog {
 public:
  explicit CapturedLog(const std::string& logger) : logger_(Poco::Logger::get(logger)) {
    logger_.setChannel(channel_);
  }
  ~CapturedLog() { logger_.setChannel(nullptr); }
  std::string text() const { return channel_->text(); }

 private:
  class Lines final : public Poco::Channel {
   public:
    void log(const Poco::Message& message) override {
      const std::lock_guard guard(mutex_);
      lines_ += message.getText() + "\n";
    }
    std::string text() const {
      const std::lock_guard guard(mutex_);
      return lines_;
    }

   private:
    mutable std::mutex mutex_;
    std::string lines_;
  };

  Poco::Logger& logger_;
  Poco::AutoPtr<Lines> channel_{new Lines};
};

}  // namespace lockkeeper::test
