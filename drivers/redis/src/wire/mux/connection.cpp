#include "wire/mux/connection.h"

#include <algorithm>

#include "lockkeeper/error.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// A replica that has lost its master refuses everything with MASTERDOWN, where it is not to serve stale data.
bool isNotMaster(const Reply& reply) { return isError(reply, "READONLY") || isError(reply, "MASTERDOWN"); }

// Scripts may report errors inside of their replies.
bool saysNotMaster(const Reply& reply) {
  return isNotMaster(reply) || std::any_of(reply.items.begin(), reply.items.end(), isNotMaster);
}

}  // namespace

void receiveAll(Stream& stream, ReplyReader& reader) {
  std::size_t received = 0;
  do {
    received = stream.receive(reader.room());
    reader.filled(received);
  } while (received > 0 && stream.secure());
}

void Connection::add(Pending commands, std::string_view bytes, Instant now) {
  lastUse = now;
  commands.since = now;
  commands.bytes = bytes.size();
  pending.push_back(std::move(commands));
  try {
    out.append(bytes);
  } catch (...) {
    // Noted but not sent, it would get the reply of the next one, and each after it that of another.
    pending.pop_back();
    throw;
  }
}

void Connection::takeOut(Instant now) {
  takenOut_ = now;
  if (!sending.empty()) return;
  std::swap(out, sending);
  for (auto each = pending.rbegin(); each != pending.rend() && !each->sent; ++each) {
    each->sent = true;
    each->since = now;
  }
}

std::size_t Connection::sendSome() { return stream->send(std::string_view(sending).substr(sentBytes)); }

void Connection::sent(std::size_t bytes) {
  // Only then does it say anything about the server: otherwise it may be the system that keeps the bytes.
  const bool wasFull = sentBytes > 0;
  if (wasFull && bytes > 0) lastProgress = std::max(lastProgress, takenOut_);
  sentBytes += bytes;
  blocked = sentBytes < sending.size();
  if (blocked) return;
  sending.clear();
  sentBytes = 0;
}

std::optional<Connection::Pending> Connection::nextAnswered(Instant now) {
  while (!reader.idle()) {
    if (pending.empty() || !pending.front().sent) {
      throw ProtocolError("the server answers more than it was asked");
    }
    Pending& oldest = pending.front();
    Reply& reply = oldest.request  ? oldest.request->answers_[node].replies[oldest.answered]
                   : oldest.posted ? oldest.posted->reply
                                   : dropped_;
    if (!reader.next(reply)) return std::nullopt;
    notMaster = notMaster || saysNotMaster(reply);
    oldest.refused = oldest.refused || isRefusal(reply);
    if (++oldest.answered < oldest.replies) continue;
    lastProgress = now;
    std::optional<Pending> done(std::move(oldest));
    pending.pop_front();
    return done;
  }
  return std::nullopt;
}

bool Connection::abandon(const Request& request, bool mustArrive) {
  const auto own = std::find_if(pending.rbegin(), pending.rend(),
                                [&](const Pending& each) { return each.request == &request; });
  if (own == pending.rend()) return false;
  own->request = nullptr;
  if (mustArrive) own->mustArrive = std::make_shared<const std::string>(request.commands());
  if (mustArrive || own->sent) return false;
  std::size_t behind = 0;
  for (auto each = pending.rbegin(); each != own; ++each) behind += each->bytes;
  out.erase(out.size() - behind - own->bytes, own->bytes);
  pending.erase(std::next(own).base());
  return true;
}

Instant Connection::lateAt(std::chrono::nanoseconds allowance) const {
  if (pending.empty()) return Instant::max();
  return saturatingAdd(std::max(pending.front().since, lastProgress), allowance);
}

}  // namespace lockkeeper::redis
