// Gateway::callAll(): a few connections, each of which makes one call after the other.

#include <algorithm>

#include "lockkeeper/stream/shared_poll.h"
#include "store/gateway.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t mostTogether = 16;

}  // namespace

/// The calls that are made together. One thread.
class Batch {
 public:
  Batch(Gateway& gateway, std::string_view path, std::span<BatchedCall> calls, Instant deadline)
      : gateway_(gateway),
        path_(path),
        rest_(calls),
        deadline_(deadline),
        member_(gateway.current()),
        token_(gateway.token(deadline)),
        fields_(gateway.fieldsFor(member_, token_)) {
    const std::size_t count = std::min(calls.size(), mostTogether);
    for (std::size_t i = 0; i < count; ++i) {
      lines_.push_back({.connection = gateway_.connection(member_)});
      next(lines_.back());
    }
  }

  std::size_t member() const { return member_; }
  /// Whether the member has not answered, or not as one that is healthy.
  bool suspicious() const { return suspicious_; }

  void run() {
    const EtcdOptions& options = gateway_.options();
    auto own = std::max(options.connectTimeout, options.ioTimeout);
    Instant since = now();
    Instant until = std::min(saturatingAdd(since, own), deadline_);
    while (true) {
      const bool answered = advance(until);
      if (answered) {
        own = options.ioTimeout;
        since = now();
        until = std::min(saturatingAdd(since, own), deadline_);
      }
      if (lines_.empty()) return;
      const Instant time = now();
      if (time >= until) break;
      std::vector<pollfd> awaited;
      for (const Line& line : lines_) awaited.push_back(line.connection->awaited());
      ::poll(awaited.data(), awaited.size(), pollTime(until, time));
    }
    const bool usedItsTimeout = Gateway::usedItsTimeout(since, until, own);
    for (const Line& line : lines_) {
      fail(line, "no answer in time");
      if (usedItsTimeout) line.connection->avoidAddress();
    }
    suspicious_ = suspicious_ || usedItsTimeout;
  }

 private:
  struct Line {
    std::unique_ptr<Connection> connection;
    BatchedCall* call = nullptr;
    bool used = false;  // for a call of this batch
  };

  Instant now() const { return gateway_.clock().now(); }

  void next(Line& line) {
    line.call = nullptr;
    if (rest_.empty()) return;
    line.call = &rest_.front();
    rest_ = rest_.subspan(1);
    if (line.used && !line.connection->usable(gateway_.clock()))
      line.connection = gateway_.connection(member_);
    line.used = true;
    post(line);
  }

  void post(Line& line) { line.connection->post(path_, fields_, line.call->body); }

  // Takes in what has come until `until`. True when that was an answer.
  bool advance(Instant until) {
    bool answered = false;
    for (Line& line : lines_) {
      try {
        while (line.call != nullptr && advance(line, until)) {
          answered = true;
          take(line);
          next(line);
        }
        if (line.call == nullptr) gateway_.keepIdle(std::move(line.connection));
      } catch (const std::exception& broken) {  // StreamBroken, or a certificate that is not right
        fail(line, broken.what());
        suspicious_ = true;
        line.connection->avoidAddress();
        line.connection.reset();
      }
    }
    std::erase_if(lines_, [](const Line& line) { return !line.connection; });
    return answered;
  }

  bool advance(Line& line, Instant until) {
    const bool kept = line.connection->connected();
    try {
      return line.connection->advance(gateway_.clock(), until);
    } catch (const StreamBroken&) {
      if (!kept || line.connection->sent()) throw;
    }
    // It was kept, and has ended meanwhile.
    line.connection = gateway_.dial(member_);
    post(line);
    return line.connection->advance(gateway_.clock(), until);
  }

  void take(const Line& line) {
    CallFault fault{CallFault::Kind::unknown, {}};
    line.call->answer = Gateway::answerOn(*line.connection, fault);
    if (line.call->answer) return;
    // Another member would say the same of a log-in or a right.
    const bool same = fault.kind == CallFault::Kind::logIn || fault.kind == CallFault::Kind::setUp;
    fail(line, fault.text);
    suspicious_ = suspicious_ || !same;
    if (fault.kind != CallFault::Kind::unknown) line.call->error = ErrorCode::storeUnavailable;
    if (fault.kind == CallFault::Kind::logIn) gateway_.forgetToken(token_);
  }

  void fail(const Line& line, const std::string& text) const {
    line.call->error = line.connection->sent() ? ErrorCode::outcomeUnknown : ErrorCode::storeUnavailable;
    line.call->cause = gateway_.name() + ": " + text;
  }

  Gateway& gateway_;
  const std::string_view path_;
  std::span<BatchedCall> rest_;
  const Instant deadline_;
  const std::size_t member_;
  const std::string token_;
  const std::string fields_;
  std::vector<Line> lines_;
  bool suspicious_ = false;
};

void Gateway::callAll(std::string_view path, std::span<BatchedCall> calls, Instant deadline) {
  if (calls.empty()) return;
  std::string cause = "the member does not answer";
  const std::size_t member = current();
  try {
    if (clock().now() < deadline) {
      Batch batch(*this, path, calls, deadline);
      batch.run();
      if (batch.suspicious()) suspect(batch.member());
    } else {
      cause = "the time for the call is over";
    }
  } catch (const StreamBroken& broken) {  // nothing was sent
    cause = broken.what();
    suspect(member);
  } catch (const std::exception& error) {  // such as a log-in that has failed
    cause = error.what();
  }
  for (BatchedCall& call : calls) {
    if (!call.answer && call.cause.empty()) call.cause = name_ + ": " + cause;
  }
}

}  // namespace lockkeeper::etcd
