#include "store/redis_store.h"

#include <algorithm>
#include <exception>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockkeeper/base/key.h"
#include "wire/dial/server_checks.h"
#include "wire/protocol/redirect.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view keysPerScan = "500";

// How often a server says what it is, while calls are made.
constexpr std::chrono::seconds pauseBetweenChecks{5};

// `prefix` as a glob pattern that matches exactly what starts with it.
std::string globOf(std::string_view prefix) {
  std::string glob;
  for (const char byte : prefix) {
    if (std::string_view("*?[]^\\-").find(byte) != std::string_view::npos) glob.push_back('\\');
    glob.push_back(byte);
  }
  return glob + "*";
}

const RedisOptions& checked(const RedisOptions& options) {
  options.check();
  return options;
}

}  // namespace

/// What the server says of itself.
class RedisStore::Check final : public Posted {
 public:
  explicit Check(RedisStore& store) : store_(store), asked_(store.clock().now()) {}

  void ended() noexcept override {
    if (!complete || reply.kind != ReplyKind::bulk) return;
    try {
      (void)store_.judge(parseInfo(reply.text), connection, asked_);
    } catch (const std::exception&) {
      // No memory: later.
    }
  }

 private:
  RedisStore& store_;
  const Instant asked_;
};

RedisStore::RedisStore(const RedisOptions& options, const Environment& environment,
                       std::function<void()> onNewServer)
    : onNewServer_(std::move(onNewServer)),
      sentinels_(checked(options).sentinel ? std::make_shared<Sentinels>(options, environment) : nullptr),
      dialRules_(sentinels_ ? DialRules{.resolve = Sentinels::resolver(sentinels_)} : DialRules{}),
      server_(
          {options}, environment,
          [this](std::size_t, const ServerFacts& facts, Instant now) {
            noteRun(facts.runId, now);
            return std::string();
          },
          dialRules_) {}

void RedisStore::noteRun(const std::string& run, Instant now) {
  nextCheck_ = saturatingAdd(now, pauseBetweenChecks);
  masterAt_ = now;
  const bool another = !run_.empty() && run_ != run;
  run_ = run;
  if (another && onNewServer_) onNewServer_();
}

void RedisStore::execute(Request& request, Instant deadline) {
  lookAround(deadline);
  if (!isImporting()) return server_.execute(request, deadline);
  request.addAsking();
  server_.execute(request, deadline);
  request.dropAskingReplies();
}

void RedisStore::lookAround(Instant deadline) noexcept {
  const Instant now = clock().now();
  // A look must not cost the call its time.
  const Instant until = now + std::min<Instant::duration>((deadline - now) / 4, options().ioTimeout / 4);
  // So that what a former master grants, which only we still reach, is granted for a moment only.
  if (sentinels_ && now >= nextLook_.load()) follow(until);
  if (now >= nextCheck_.load()) postCheck();
}

// Nobody waits for the answer: the call that comes next reads it with its own.
void RedisStore::postCheck() noexcept {
  nextCheck_ = saturatingAdd(clock().now(), pauseBetweenChecks);
  try {
    Request request;
    request.add({"INFO"});
    server_.post(request, std::make_unique<Check>(*this), 0);
  } catch (const std::exception&) {
    // No memory: later.
  }
}

// Returns why the server must be left, if it must.
std::string RedisStore::judge(const ServerFacts& facts, std::uint64_t connection, Instant asked) {
  std::string fault = evictionFault(name(), facts, options());
  if (!fault.empty()) environment().tell({.kind = EventKind::noted, .store = name(), .text = fault});
  if (fault.empty() && facts.role == "slave") fault = "the server is not the master any more";
  if (fault.empty()) {
    masterAt_ = asked;
    return fault;
  }
  server_.disconnect(0, connection, fault);
  if (onNewServer_) onNewServer_();
  return fault;
}

bool RedisStore::wasMasterLately() const {
  return clock().now() <= saturatingAdd(masterAt_.load(), pauseBetweenChecks);
}

bool RedisStore::isMaster(std::uint64_t connection, Instant deadline) {
  const Instant asked = clock().now();
  Request request;
  request.add({"INFO"});
  execute(request, deadline);
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.kind != ReplyKind::bulk) unexpected(request);
  const std::string fault = judge(parseInfo(reply.text), request.connection(), asked);
  if (!fault.empty()) throw StoreUnavailable(name() + ": " + fault);
  return request.connection() == connection;
}

std::optional<std::chrono::milliseconds> RedisStore::checkEvery() const {
  return sentinels_ ? std::optional(pauseBetweenLooks) : std::nullopt;
}

void RedisStore::ping(Instant deadline) {
  Request request;
  request.add({"PING"});
  execute(request, deadline);
}

void RedisStore::checkServer(Instant deadline) noexcept {
  follow(std::min(deadline, saturatingAdd(clock().now(), options().ioTimeout)));
  try {
    ping(deadline);
  } catch (const std::exception&) {
    // Who needs the server hears of it.
  }
}

void RedisStore::follow(Instant deadline) noexcept {
  nextLook_ = saturatingAdd(clock().now(), pauseBetweenLooks);
  try {
    const std::string master = sentinels_->find(deadline).name();
    if (server_.disconnectUnless(master, "the sentinels name another master") && onNewServer_) onNewServer_();
  } catch (const std::exception&) {
    // As long as they do not agree on another one, the present one is right.
  }
}

bool RedisStore::lacksScript(const Request& request) {
  const auto& replies = request.answers().front().replies;
  return std::any_of(replies.begin(), replies.end(),
                     [](const Reply& reply) { return isError(reply, "NOSCRIPT"); });
}

bool RedisStore::flagOf(const Request& request, std::size_t index) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (!reply.isInteger(0) && !reply.isInteger(1)) unexpected(request);
  return reply.integer == 1;
}

RenewOutcome RedisStore::failedRenewal(const Reply& error) const {
  const ErrorCode code = faultOf(name(), error).code;
  return code == ErrorCode::outcomeUnknown ? RenewOutcome::unknown : RenewOutcome::unavailable;
}

std::string RedisStore::faultIn(const Reply& error) const { return faultOf(name(), error).text; }

void RedisStore::refuse(const Reply& error, std::string_view needs) const {
  const ServerFault fault = faultOf(name(), error, needs);
  if (auto redirect = redirectIn(error)) throw Redirected(fault.text, std::move(*redirect));
  throwError(fault.code, fault.text);
}

void RedisStore::unexpected(const Request& request) {
  throw ProtocolError(leaveForForm(request.connection()));
}

std::string RedisStore::leaveForForm(std::uint64_t connection) {
  const std::string why = "the server sent a reply of an unexpected form";
  server_.disconnect(0, connection, why);
  return name() + ": " + why;
}

void RedisStore::scan(std::string_view prefix, std::string_view type, Instant deadline,
                      const std::function<bool(std::span<const std::string_view> keys)>& visit) {
  std::unordered_set<std::string> seen;  // a scan may meet a key more than once
  KeyPage page;
  do {
    page = scanPage(prefix, type, page.next, deadline);
    std::erase_if(page.keys, [&](const std::string& key) { return !seen.insert(key).second; });
    const std::vector<std::string_view> keys(page.keys.begin(), page.keys.end());
    if (!keys.empty() && !visit(keys)) return;
  } while (!page.next.empty());
}

RedisStore::KeyPage RedisStore::scanPage(std::string_view prefix, std::string_view type,
                                         std::string_view place, Instant deadline) {
  constexpr std::string_view end = "0";
  const std::string glob = globOf(prefix);
  // A place is the run of the server and a cursor, which means nothing to another one.
  const auto space = place.find(' ');
  const std::string_view run = place.substr(0, space);
  std::string_view cursor = place.empty() ? end : place.substr(space + 1);
  Request request;
  std::string present;
  while (true) {
    std::vector<std::string_view> words = {"SCAN", cursor, "MATCH", glob, "COUNT", keysPerScan};
    if (!type.empty()) words.insert(words.end(), {"TYPE", type});
    request.clear();
    request.add(words);
    execute(request, deadline);
    present = serverRun(request.connection());
    if (cursor == end || present == run) break;
    cursor = end;
  }
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.items.size() != 2 || reply.items[1].kind != ReplyKind::array) unexpected(request);
  KeyPage page;
  if (reply.items[0].text != end) page.next = present + " " + reply.items[0].text;
  for (const Reply& key : reply.items[1].items) {
    const bool companion = key.text.find(reservedMark) != std::string::npos;
    if (!companion) page.keys.push_back(key.text);
  }
  return page;
}

}  // namespace lockkeeper::redis
