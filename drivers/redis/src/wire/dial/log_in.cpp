#include "wire/dial/log_in.h"

#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// What a server sends, before anything is read from it, when it has too many clients.
bool isFull(const Reply& reply) { return reply.text == "ERR max number of clients reached"; }

}  // namespace

// One write for everything, so that a reconnect costs one round trip. Replies are judged one by one, since a
// server that refuses us early answers once and closes.
LogIn::LogIn(const RedisOptions& options, const std::string& store, const Needs& needs)
    : options_(options), store_(store), needs_(needs) {
  const auto add = [&](Step step, std::initializer_list<std::string_view> words) {
    steps_.push_back(step);
    appendCommand(commands_, words);
  };
  const std::string database = std::to_string(options.database);
  if (!options.user.empty()) {
    add(Step::auth, {"AUTH", options.user, options.password});
  } else if (!options.password.empty()) {
    add(Step::auth, {"AUTH", options.password});
  }
  if (options.database != 0) add(Step::select, {"SELECT", database});
  add(Step::setName, {"CLIENT", "SETNAME", options.clientName});
  if (options.minReplicas > 0) add(Step::replicaWait, {"WAIT", "0", "1"});  // whether it is permitted
  add(Step::info, {"INFO"});
  add(Step::appendFsync, {"CONFIG", "GET", "appendfsync"});
}

bool LogIn::advance(Stream& stream) {
  while (sent_ < commands_.size()) {
    const std::size_t sent = stream.send(std::string_view(commands_).substr(sent_));
    if (sent == 0) return false;
    sent_ += sent;
  }
  Reply reply;
  while (answered_ < steps_.size()) {
    bool whole = false;
    try {
      whole = reader_.next(reply);
    } catch (const ProtocolError&) {
      throw ProtocolError(store_ + " does not speak the Redis protocol");
    }
    if (whole) {
      accept(steps_[answered_++], reply);
      continue;
    }
    const std::size_t received = stream.receive(reader_.room());
    if (received == 0) return false;
    reader_.filled(received);
  }
  if (!reader_.idle()) throw ProtocolError(store_ + " answers more than it was asked");
  return true;
}

pollfd LogIn::awaited(const Stream& stream) const {
  return sent_ < commands_.size() ? stream.toSend() : stream.toReceive();
}

void LogIn::accept(Step step, const Reply& reply) {
  if (reply.kind == ReplyKind::error) return refuse(step, reply);
  if (step == Step::info) {
    if (reply.kind != ReplyKind::bulk) throw ProtocolError(store_ + " does not answer INFO like Redis");
    facts_ = parseInfo(reply.text);
    needs_.check(store_, facts_, options_);
  }
  if (step == Step::appendFsync && reply.items.size() == 2) facts_.appendFsync = reply.items[1].text;
}

// Returns when the server may refuse this step.
void LogIn::refuse(Step step, const Reply& error) const {
  const bool refused = isError(error, "ERR") && !isFull(error);
  if (refused && step == Step::auth) throw ConfigError(store_ + " has no password for the default user");
  if (refused && step == Step::select) {
    throw ConfigError(store_ + " does not have the database " + std::to_string(options_.database));
  }
  // A name and the fsync setting are only for people: a user without these rights is welcome.
  const bool optional = step == Step::setName || step == Step::appendFsync;
  if (optional && (refused || isError(error, "NOPERM"))) return;
  if (isFull(error)) throw StoreUnavailable(store_ + " has its maximum of clients");
  const ServerFault fault = faultOf(store_, error, needs_.permissions);
  // Logging in leaves nothing behind, so that no outcome of it is unknown.
  throwError(fault.code == ErrorCode::config ? fault.code : ErrorCode::storeUnavailable, fault.text);
}

}  // namespace lockkeeper::redis
