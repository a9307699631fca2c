#include "wire/connection.h"

#include <algorithm>

namespace lockkeeper::etcd {

void Connection::post(std::string_view path, std::string_view fields, std::string_view body) {
  out_.assign("POST ").append(path).append(" HTTP/1.1\r\n");
  out_.append(fields);
  out_.append("Content-Type: application/json\r\nContent-Length: ").append(std::to_string(body.size()));
  out_.append("\r\n\r\n").append(body);
  sent_ = false;
  if (!ignoredReply_) reply_.restart();
}

bool Connection::advance(const Clock& clock, Instant until) {
  more_ = false;
  if (!connected_ && !connect()) return false;
  connected_ = true;
  if (ignoredReply_) {
    if (!receive(clock, until)) return false;
    ignoredReply_ = false;
    // What has come behind the reply must not be taken for the next one.
    if (!clean()) throw StreamBroken("the connection is of no use any more");
    reply_.restart();
  }
  while (!out_.empty()) {
    if (!sent_) sentAt_ = clock.now();
    const std::size_t count = stream_->send(out_);
    if (count == 0) return false;
    sent_ = true;
    out_.erase(0, count);
  }
  return receive(clock, until);
}

bool Connection::connect() {
  if (addresses_.empty()) {
    auto found = host_.addressesFrom(*lookup_);
    if (!found) return false;
    addresses_ = *std::move(found);
    turn_ = host_.turn();
  }
  while (true) {
    try {
      if (!stream_) stream_.emplace(host_.name(), addresses_[turn_ % addresses_.size()], tls_);
      return stream_->connect();
    } catch (const StreamBroken&) {
      host_.passOn(turn_);
      if (++refusals_ == addresses_.size()) throw;
    }
    ++turn_;
    stream_.reset();
  }
}

bool Connection::usable(const Clock& clock) noexcept {
  try {
    if (ignoredReply_ && !receive(clock, Instant::min())) return true;
    ignoredReply_ = false;
    return clean();
  } catch (const std::exception&) {  // it has ended
    return false;
  }
}

pollfd Connection::awaited() const {
  if (!stream_) return {lookup_->descriptor(), POLLIN, 0};
  if (!connected_) return stream_->toConnect();
  return ignoredReply_ || out_.empty() ? stream_->toReceive() : stream_->toSend();
}

bool Connection::receive(const Clock& clock, Instant until) {
  while (!reply_.complete()) {
    const std::size_t count = stream_->receive(reply_.room());
    if (count == 0) return false;
    reply_.filled(count);
    if (clock.now() < until) continue;
    more_ = !reply_.complete();
    return !more_;
  }
  return true;
}

}  // namespace lockkeeper::etcd
