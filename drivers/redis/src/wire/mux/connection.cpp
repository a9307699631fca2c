#include "wire/mux/connection.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::redis {

void Connection::add(Request* request, std::string_view commands, std::size_t replies, Instant now,
                     Instant dueAt) {
  lastUse = now;
  out.append(commands);
  pending.push_back({.request = request, .replies = replies, .sentAt = now, .dueAt = dueAt});
}

void Connection::takeOut() {
  std::swap(out, sending);
  for (auto each = pending.rbegin(); each != pending.rend() && !each->handedOver; ++each) {
    each->handedOver = true;
  }
}

Request* Connection::nextAnswered() {
  while (!reader.idle()) {
    if (pending.empty() || !pending.front().handedOver) {
      throw ProtocolError("the server answers more than it was asked");
    }
    Pending& oldest = pending.front();
    Request* const request = oldest.request;
    if (!reader.next(request ? request->replies_[oldest.answered] : dropped)) return nullptr;
    if (++oldest.answered < oldest.replies) continue;
    pending.pop_front();
    if (request == nullptr) continue;
    request->finished_ = true;
    return request;
  }
  return nullptr;
}

void Connection::forget(const Request& request) {
  const auto own = std::find_if(pending.rbegin(), pending.rend(),
                                [&](const Pending& each) { return each.request == &request; });
  if (own != pending.rend()) own->request = nullptr;
}

void Connection::fail(Request& request, ErrorCode code, const std::string& text) {
  request.failure_ = code;
  request.failureText_ = text;
  request.finished_ = true;
}

}  // namespace lockkeeper::redis
