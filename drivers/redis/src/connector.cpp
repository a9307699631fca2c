#include "connector.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "server_error.h"
#include "tls_context.h"

namespace lockkeeper::redis {

namespace {

// What a server sends, before anything is read from it, when it has too many clients.
bool isFull(const Reply& reply) { return reply.text == "ERR max number of clients reached"; }

}  // namespace

Connector::Connector(RedisOptions options, Environment environment)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      store_(options_.display()),
      tls_(makeTlsContext(options_)) {}

std::unique_ptr<Stream> Connector::connect(Instant deadline) {
  Clock& clock = *environment_.clock;
  deadline = std::min(deadline, saturatingAdd(clock.now(), options_.connectTimeout));
  try {
    auto stream = std::make_unique<Stream>(options_, tls_, clock, deadline);
    note(logIn(*stream, deadline));
    return stream;
  } catch (const StreamBroken& fault) {
    throw StoreUnavailable(store_ + " cannot be reached: " + fault.what());
  } catch (const ConfigError& fault) {
    // What TLS has found; the errors of the log-in name the store already.
    const std::string text = fault.what();
    throw ConfigError(text.starts_with(store_) ? text : store_ + ": " + text);
  }
}

std::string Connector::durability() const {
  const std::lock_guard guard(mutex_);
  return durability_;
}

// One write for everything, so that a reconnect costs one round trip. Replies are judged one by one, since a
// server that refuses us early answers once and closes.
ServerFacts Connector::logIn(Stream& stream, Instant deadline) {
  std::string commands;
  std::vector<Step> steps;
  const auto add = [&](Step step, std::initializer_list<std::string_view> words) {
    steps.push_back(step);
    appendCommand(commands, words);
  };
  const std::string database = std::to_string(options_.database);
  if (!options_.user.empty()) {
    add(Step::auth, {"AUTH", options_.user, options_.password});
  } else if (!options_.password.empty()) {
    add(Step::auth, {"AUTH", options_.password});
  }
  if (options_.database != 0) add(Step::select, {"SELECT", database});
  add(Step::setName, {"CLIENT", "SETNAME", options_.clientName});
  if (options_.minReplicas > 0) add(Step::replicaWait, {"WAIT", "0", "1"});  // whether it is permitted
  add(Step::info, {"INFO"});
  add(Step::appendFsync, {"CONFIG", "GET", "appendfsync"});

  if (!stream.sendAll(commands, *environment_.clock, deadline)) throw StreamBroken("logging in timed out");
  ServerFacts facts;
  ReplyReader reader;
  for (const Step step : steps) {
    const Reply reply = readReply(stream, reader, deadline);
    judge(step, reply);
    if (step == Step::info) {
      if (reply.kind != ReplyKind::bulk) throw ProtocolError(store_ + " does not answer INFO like Redis");
      facts = parseInfo(reply.text);
      checkServer(store_, facts, options_);
    }
    if (step == Step::appendFsync && reply.items.size() == 2) facts.appendFsync = reply.items[1].text;
  }
  if (!reader.idle()) throw ProtocolError(store_ + " answers more than it was asked");
  return facts;
}

void Connector::judge(Step step, const Reply& reply) const {
  if (reply.kind != ReplyKind::error) return;
  const bool refused = isError(reply, "ERR") && !isFull(reply);
  if (refused && step == Step::auth) throw ConfigError(store_ + " has no password for the default user");
  if (refused && step == Step::select) {
    throw ConfigError(store_ + " does not have the database " + std::to_string(options_.database));
  }
  // A name and the fsync setting are only for people: a user without these rights is welcome.
  const bool optional = step == Step::setName || step == Step::appendFsync;
  if (optional && (refused || isError(reply, "NOPERM"))) return;
  if (isFull(reply)) throw StoreUnavailable(store_ + " has its maximum of clients");
  const ServerFault fault = faultOf(store_, reply);
  // Logging in leaves nothing behind, so that no outcome of it is unknown.
  throwError(fault.code == ErrorCode::config ? fault.code : ErrorCode::storeUnavailable, fault.text);
}

Reply Connector::readReply(Stream& stream, ReplyReader& reader, Instant deadline) {
  Reply reply;
  try {
    while (!reader.next(reply)) {
      if (!stream.waitReadable(*environment_.clock, deadline)) throw StreamBroken("logging in timed out");
      reader.filled(stream.receive(reader.room()));
    }
  } catch (const ProtocolError&) {
    throw ProtocolError(store_ + " does not speak the Redis protocol");
  }
  return reply;
}

// Listeners are called outside the mutex, and once for each start of a server.
void Connector::note(const ServerFacts& facts) {
  const std::string durability = durabilityOf(facts);
  {
    const std::lock_guard guard(mutex_);
    durability_ = durability;
    if (notedRunId_ == facts.runId) return;
    notedRunId_ = facts.runId;
  }
  try {
    environment_.listener->noted(store_, durability);
  } catch (...) {
    // What a listener throws is dropped: it must not look like a fault of the server.
  }
}

}  // namespace lockkeeper::redis
