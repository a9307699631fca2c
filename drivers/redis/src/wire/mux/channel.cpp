#include "wire/mux/channel.h"

#include <algorithm>
#include <utility>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// A connection that was idle for so long is looked at before it is used again: the server may have ended it.
constexpr milliseconds idleBeforeLook{1000};

}  // namespace

Channel::Channel(Connector& connector)
    : connector_(connector),
      clock_(*connector.environment().clock),
      ioTimeout_(connector.options().ioTimeout + (connector.options().minReplicas > 0
                                                      ? connector.options().replicaTimeout
                                                      : milliseconds{0})) {}

Channel::~Channel() = default;

void Channel::submit(Request& request, Instant deadline) {
  Lock lock(mutex_);
  ensureConnected(lock, deadline);
  const std::shared_ptr<Connection> connection = connection_;
  request.sentAt_ = clock_.now();
  if (request.sentAt_ >= deadline) throw StoreUnavailable(connector_.store() + ": no time was left to send");
  connection->add(&request, request.commands_, request.replies_.size(), request.sentAt_, deadline);
  request.channel_ = this;
  write(lock, *connection, request, deadline);
}

void Channel::await(Request& request, Instant deadline) {
  {
    Lock lock(mutex_);
    // An unfinished request is one of this connection: ending a connection finishes all of its requests.
    const std::shared_ptr<Connection> connection = connection_;
    while (!request.finished_) {
      if (clock_.now() >= deadline) {
        giveUp(*connection, request);
      } else if (!connection->writing && !connection->out.empty()) {
        write(lock, *connection, request, deadline);
      } else if (!connection->reading) {
        read(lock, *connection, request, deadline);
      } else {
        std::condition_variable& waker = wakers_.take();
        request.waker_ = &waker;
        clock_.wait(lock.forWaiting(), waker, deadline);
        request.waker_ = nullptr;
        wakers_.giveBack(waker);
      }
    }
    request.channel_ = nullptr;
    if (connection) passOn(lock, *connection, request);
  }
  if (request.failure_) throwError(*request.failure_, request.failureText_);
}

void Channel::disconnect(const std::string& why) {
  Lock lock(mutex_);
  const std::shared_ptr<Connection> connection = connection_;
  if (connection) drop(lock, *connection, ErrorCode::outcomeUnknown, why);
}

void Channel::ensureConnected(Lock& lock, Instant deadline) {
  dropIfStale(lock);
  while (!connection_) {
    if (!connecting_) return connect(lock, deadline);
    if (clock_.now() >= deadline) {
      throw StoreUnavailable(connector_.store() + " cannot be reached: still connecting");
    }
    clock_.wait(lock.forWaiting(), connected_, deadline);
  }
}

void Channel::connect(Lock& lock, Instant deadline) {
  const Instant started = clock_.now();
  backoff_.check(started);
  connecting_ = true;
  lock.unlock();
  std::unique_ptr<Stream> stream;
  ErrorCode failure = ErrorCode::storeUnavailable;
  std::string failureText;
  try {
    stream = connector_.connect(deadline);
  } catch (const Error& fault) {
    failure = fault.code();
    failureText = fault.what();
  } catch (const std::exception& fault) {
    failureText = connector_.store() + " cannot be reached: " + fault.what();
  }
  lock.lock();
  connecting_ = false;
  connected_.notify_all();
  if (stream) {
    connection_ = std::make_shared<Connection>(std::move(stream));
    backoff_.succeeded();
    return;
  }
  // A caller that gave the server less time than others may does not speak for them.
  const bool impatient = deadline < started + connector_.options().connectTimeout && clock_.now() >= deadline;
  if (!impatient) backoff_.failed(failure, failureText, clock_.now(), *connector_.environment().random);
  throwError(failure, failureText);
}

void Channel::dropIfStale(Lock& lock) {
  const std::shared_ptr<Connection> connection = connection_;
  if (!connection) return;
  if (late(*connection)) {
    drop(lock, *connection, ErrorCode::outcomeUnknown, "no reply within the I/O timeout");
  } else if (connection->pending.empty() && clock_.now() - connection->lastUse > idleBeforeLook &&
             connection->stream->readable()) {
    drop(lock, *connection, ErrorCode::outcomeUnknown, "the server closed the connection");
  }
}

void Channel::write(Lock& lock, Connection& connection, const Request& request, Instant deadline) {
  if (connection.writing) return;
  connection.writing = true;
  while (!connection.out.empty()) {
    if (request.finished_ && wakeWriter(lock, connection)) break;
    connection.takeOut();
    lock.unlock();
    bool sent = false;
    std::string fault = "sending timed out";
    try {
      sent = connection.stream->sendAll(connection.sending, clock_,
                                        std::min(deadline, request.sentAt_ + ioTimeout_));
    } catch (const std::exception& broken) {
      fault = broken.what();
    }
    lock.lock();
    connection.sending.clear();
    if (!sent) drop(lock, connection, ErrorCode::outcomeUnknown, fault);
  }
  connection.writing = false;
}

// Whoever has what it came for leaves the writing to the next one that waits for it.
bool Channel::wakeWriter(Lock& lock, Connection& connection) {
  for (const Connection::Pending& each : connection.pending) {
    if (each.handedOver || each.request == nullptr || each.request->waker_ == nullptr) continue;
    lock.wake(*each.request->waker_);
    return true;
  }
  return false;
}

void Channel::read(Lock& lock, Connection& connection, const Request& request, Instant deadline) {
  connection.reading = true;
  while (!request.finished_) {
    const Instant until = std::min(deadline, connection.pending.front().sentAt + ioTimeout_);
    lock.unlock();
    bool ready = false;
    std::string fault;
    try {
      ready = connection.stream->waitReadable(clock_, until);
      if (ready) connection.reader.filled(connection.stream->receive(connection.reader.room()));
    } catch (const std::exception& broken) {
      fault = broken.what();
    }
    lock.lock();
    if (!fault.empty()) {
      drop(lock, connection, ErrorCode::outcomeUnknown, fault);
    } else if (ready) {
      if (!connection.ended) deliver(lock, connection);
    } else if (late(connection)) {
      drop(lock, connection, ErrorCode::outcomeUnknown, "no reply within the I/O timeout");
    } else if (clock_.now() >= deadline) {
      break;
    }
  }
  connection.reading = false;
}

void Channel::deliver(Lock& lock, Connection& connection) {
  try {
    while (const Request* request = connection.nextAnswered()) {
      if (request->waker_ != nullptr) lock.wake(*request->waker_);
    }
  } catch (const ProtocolError& fault) {
    drop(lock, connection, ErrorCode::protocol, fault.what());
  }
}

bool Channel::late(const Connection& connection) const {
  return connection.isLate(clock_.now() - ioTimeout_);
}

void Channel::drop(Lock& lock, Connection& connection, ErrorCode code, const std::string& why) {
  if (connection.ended) return;
  connection.end(code, connector_.store() + ": " + why, [&](const Request& request) {
    if (request.waker_ != nullptr) lock.wake(*request.waker_);
  });
  if (connection_.get() == &connection) connection_.reset();
}

void Channel::giveUp(Connection& connection, Request& request) {
  std::size_t unsentBefore = 0;
  const auto own = std::find_if(connection.pending.begin(), connection.pending.end(),
                                [&](const Connection::Pending& each) {
                                  if (each.request == &request) return true;
                                  if (!each.handedOver) unsentBefore += each.request->commands_.size();
                                  return false;
                                });
  request.finished_ = true;
  request.failureText_ = connector_.store() + " did not answer in time";
  if (own->handedOver) {
    request.failure_ = ErrorCode::outcomeUnknown;
    own->request = nullptr;
  } else {
    request.failure_ = ErrorCode::storeUnavailable;
    connection.out.erase(unsentBefore, request.commands_.size());
    connection.pending.erase(own);
  }
}

// Who leaves must not leave others without a reader, nor commands without a writer. The one who has to wait
// longest reads next, so that the role changes hands as seldom as can be.
void Channel::passOn(Lock& lock, Connection& connection, const Request& request) {
  write(lock, connection, request, request.sentAt_);  // without waiting
  if (connection.reading) return;
  for (auto each = connection.pending.rbegin(); each != connection.pending.rend(); ++each) {
    if (each->request == nullptr || each->request->waker_ == nullptr) continue;
    return lock.wake(*each->request->waker_);
  }
}

void Channel::abandon(Request& request) {
  Lock lock(mutex_);
  const std::shared_ptr<Connection> connection = connection_;
  if (!request.finished_) giveUp(*connection, request);
  if (connection) passOn(lock, *connection, request);
}

}  // namespace lockkeeper::redis
