#include "simulation/etcd/cluster.h"

#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace lockkeeper::simulation {
namespace {

constexpr std::uint16_t port = 2379;
// A leader looks so often at least which leases have ended.
constexpr Time leaseLook = 500 * millisecond;

std::string chunk(const std::string& body) {
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, body.size(), 16).ptr;
  return std::string(size, end) + "\r\n" + body + "\r\n";
}

std::string errorText(const EtcdRefusal& refusal) {
  const std::string text = refusal.what();
  return R"({"error":")" + text + R"(","message":")" + text + R"(","code":)" +
         std::to_string(refusal.code()) + "}";
}

}  // namespace

/// One connection of a client to a member's gateway.
class EtcdCluster::Client final : public Session {
 public:
  Client(EtcdCluster& cluster, Connection& connection) : cluster_(cluster), connection_(connection) {}
  ~Client() override { std::erase(cluster_.watchers_, this); }

  void receive(std::string_view bytes) override {
    received_ += bytes;
    while (takeRequest()) {
    }
  }

  void tell(const std::string& line) { connection_.reply(chunk(line)); }

 private:
  bool takeRequest() {
    const std::size_t head = received_.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::string lengthField = "Content-Length: ";
    std::size_t length = 0;
    const char* const digits = received_.data() + received_.find(lengthField) + lengthField.size();
    std::from_chars(digits, received_.data() + head, length);
    if (received_.size() < head + 4 + length) return false;
    const std::size_t path = received_.find(' ') + 1;
    const std::string target = received_.substr(path, received_.find(' ', path) - path);
    const std::string body = received_.substr(head + 4, length);
    received_.erase(0, head + 4 + length);
    cluster_.scheduler_.trace("etcd", [&] {
      return "answers " + cluster_.scheduler_.process(connection_.process()).name + ": " + target + " " +
             body.substr(0, 200);
    });
    if (target == "/v3/watch" && cluster_.electedAt_ <= cluster_.scheduler_.now()) {
      watch();
    } else {
      reply(cluster_.answer(target, body));
    }
    return true;
  }

  void reply(const Answer& answer) {
    connection_.reply("HTTP/1.1 " + std::to_string(answer.status) + " .\r\nContent-Length: " +
                      std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body);
  }

  void watch() {
    connection_.reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    tell(R"({"result":{)" + cluster_.keys_.header() + R"(,"created":true}})" + "\n");
    cluster_.watchers_.push_back(this);
  }

  EtcdCluster& cluster_;
  Connection& connection_;
  std::string received_;
};

class EtcdCluster::Member final : public Server {
 public:
  explicit Member(EtcdCluster& cluster) : cluster_(cluster) {}

  std::unique_ptr<Session> accept(Connection& connection) override {
    if (stoppedUntil > cluster_.scheduler_.now()) return nullptr;
    return std::make_unique<Client>(cluster_, connection);
  }

  Time stoppedUntil = 0;

 private:
  EtcdCluster& cluster_;
};

EtcdCluster::EtcdCluster(Scheduler& scheduler, Network& network, std::uint64_t seed)
    : scheduler_(scheduler),
      network_(network),
      chance_(seed, 7),
      keys_([this] { return scheduler_.now(); }, [this](const auto& removal) { tellWatchers(removal); }) {
  for (std::uint32_t i = 0; i < members; ++i) {
    members_.push_back(std::make_unique<Member>(*this));
    network_.listen(ip(i), port, *members_.back());
  }
}

EtcdCluster::~EtcdCluster() = default;

// As long as there are any.
void EtcdCluster::lookAtLeasesLater() {
  if (willLookAtLeases_ || !keys_.hasLeases()) return;
  willLookAtLeases_ = true;
  scheduler_.at(scheduler_.now() + static_cast<Time>(chance_.upTo(leaseLook)), [this] {
    willLookAtLeases_ = false;
    if (electedAt_ <= scheduler_.now()) keys_.endLeases();
    lookAtLeasesLater();
  });
}

void EtcdCluster::stop(std::uint32_t member, Time until) {
  members_[member]->stoppedUntil = until;
  network_.endAll(ip(member), port, chance_.happens(0.7));
}

void EtcdCluster::electUntil(Time until) {
  electedAt_ = until;
  scheduler_.at(until, [this] { keys_.startLeasesAnew(); });
}

EtcdCluster::Answer EtcdCluster::answer(const std::string& path, const std::string& body) {
  if (electedAt_ > scheduler_.now()) return answerWithoutLeader(path, body);
  try {
    const auto request = Poco::JSON::Parser().parse(body).extract<Poco::JSON::Object::Ptr>();
    Answer answer{.body = keys_.call(path, *request)};
    lookAtLeasesLater();
    return answer;
  } catch (const EtcdRefusal& refusal) {
    return {.status = 404, .body = errorText(refusal)};
  }
}

EtcdCluster::Answer EtcdCluster::answerWithoutLeader(const std::string& path, const std::string& body) {
  constexpr int unavailable = 14;
  if (!chance_.happens(0.3)) return {503, errorText(EtcdRefusal(unavailable, "etcdserver: no leader"))};
  scheduler_.at(electedAt_ + static_cast<Time>(chance_.upTo(second)), [this, path, body] {
    scheduler_.trace("etcd", [&] { return "carries out " + path + " " + body.substr(0, 200) + " late"; });
    answer(path, body);
  });
  return {503, errorText(EtcdRefusal(unavailable, "etcdserver: request timed out"))};
}

void EtcdCluster::tellWatchers(const EtcdKeys::Removal& removal) {
  std::string events;
  for (const std::string& key : removal.keys) {
    events += (events.empty() ? "" : ",") + std::string(R"({"type":"DELETE","kv":{"key":")") + base64Of(key) +
              R"(","mod_revision":")" + std::to_string(removal.revision) + R"("}})";
  }
  const std::string line = R"({"result":{)" + keys_.header() + R"(,"events":[)" + events + "]}}\n";
  for (Client* const each : watchers_) each->tell(line);
}

}  // namespace lockkeeper::simulation
