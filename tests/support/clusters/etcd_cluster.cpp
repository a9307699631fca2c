#include "etcd_cluster.h"

#include <Poco/Base64Decoder.h>
#include <Poco/Base64Encoder.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "free_port.h"
#include "tls_files.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

constexpr int clusterStartAttempts = 5;
constexpr std::chrono::seconds clusterStartBound{30};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string base64(const std::string& bytes) {
  std::ostringstream text;
  Poco::Base64Encoder encoder(text);
  encoder.rdbuf()->setLineLength(0);
  encoder << bytes;
  encoder.close();
  return text.str();
}

std::string fromBase64(const std::string& text) {
  std::istringstream in(text);
  Poco::Base64Decoder decoder(in);
  return {std::istreambuf_iterator<char>(decoder), {}};
}

/// The text of a field in JSON of one line.
std::string field(const std::string& json, const std::string& name) {
  const std::size_t begin = json.find("\"" + name + "\":\"");
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + name.size() + 4;
  return json.substr(from, json.find('"', from) - from);
}

/// The machine's own, or another one of which the environment tells the command.
std::string etcdProgram() {
  const char* const given = std::getenv("LOCKKEEPER_ETCD");
  return given ? given : "etcd";
}

constexpr const char* everyLock =
    R"({"key":"L2xvY2trZWVwZXIvbG9ja3Mv","range_end":"L2xvY2trZWVwZXIvbG9ja3Mw",)"
    R"("sort_target":"CREATE","sort_order":"ASCEND"})";

}  // namespace

EtcdCluster::EtcdCluster(EtcdOptions options) : options_(std::move(options)) {
  for (int attempt = 0; attempt < clusterStartAttempts; ++attempt) {
    nodes_.clear();
    nodes_.resize(options_.nodes);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].port = freePort();
      nodes_[i].peerPort = freePort();
      std::filesystem::remove_all(folder_ / std::to_string(i));
      std::filesystem::create_directory(folder_ / std::to_string(i));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) launch(i);
    const auto all = [&](auto&& is) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!is(i)) return false;
      }
      return true;
    };
    const auto runs = [&](std::size_t i) { return nodes_[i].process->running(); };
    waitUntil([&] { return !all(runs) || all([&](std::size_t i) { return healthy(i); }); },
              clusterStartBound);
    if (!all(runs)) continue;  // a port was not free
    if (!options_.password.empty()) switchAuthenticationOn();
    return;
  }
  throw std::runtime_error("etcd does not start: " + log(0));
}

EtcdCluster::~EtcdCluster() = default;

std::string EtcdCluster::uri(std::size_t first) const {
  std::string text = options_.tls ? "etcds://" : "etcd://";
  if (!options_.password.empty()) text += "keeper:" + options_.password + "@";
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    text += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port((first + i) % nodes_.size()));
  }
  return text;
}

std::size_t EtcdCluster::leader() const {
  std::size_t found = nodes_.size();
  const auto leads = [&](std::size_t i) {
    const std::string status = ask(i, "/v3/maintenance/status", "{}");
    return !field(status, "leader").empty() && field(status, "leader") == field(status, "member_id");
  };
  waitUntil(
      [&] {
        for (std::size_t i = 0; i < nodes_.size() && found == nodes_.size(); ++i) {
          if (nodes_[i].process && !nodes_[i].paused && leads(i)) found = i;
        }
        return found != nodes_.size();
      },
      clusterStartBound);
  if (found == nodes_.size()) throw std::runtime_error("etcd has no leader");
  return found;
}

void EtcdCluster::pause(std::size_t node) {
  nodes_[node].process->pause();
  nodes_[node].paused = true;
}

void EtcdCluster::resume(std::size_t node) {
  nodes_[node].process->resume();
  nodes_[node].paused = false;
}

void EtcdCluster::kill(std::size_t node) { nodes_[node].process.reset(); }

void EtcdCluster::start(std::size_t node) {
  for (int attempt = 0; attempt < clusterStartAttempts; ++attempt) {
    launch(node);
    waitUntil([&] { return healthy(node) || !nodes_[node].process->running(); }, clusterStartBound);
    if (nodes_[node].process->running()) return;
  }
  throw std::runtime_error("etcd does not start again: " + log(node));
}

void EtcdCluster::launch(std::size_t node) {
  ProcessOptions process;
  process.standardOutput = folder_ / std::to_string(node) / "log";
  process.standardError = process.standardOutput;
  try {
    nodes_[node].process = std::make_unique<Process>(commandLine(node), process);
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string(error.what()) + " (the tests need the package etcd-server)");
  }
}

std::vector<std::string> EtcdCluster::commandLine(std::size_t node) const {
  const auto name = [](std::size_t i) { return "node" + std::to_string(i); };
  const auto peer = [&](std::size_t i) { return "http://127.0.0.1:" + std::to_string(nodes_[i].peerPort); };
  const std::string clients =
      (options_.tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(nodes_[node].port);
  std::string cluster;
  for (std::size_t i = 0; i < nodes_.size(); ++i) cluster += (i == 0 ? "" : ",") + name(i) + "=" + peer(i);
  // The operating system stays up, so nothing that is killed needs the disk.
  std::vector<std::string> line{etcdProgram(),
                                "--name=" + name(node),
                                "--data-dir=" + (folder_ / std::to_string(node) / "data").string(),
                                "--unsafe-no-fsync",
                                "--listen-client-urls=" + clients,
                                "--advertise-client-urls=" + clients,
                                "--listen-peer-urls=" + peer(node),
                                "--initial-advertise-peer-urls=" + peer(node),
                                "--initial-cluster=" + cluster};
  if (!options_.gateway) line.push_back("--enable-grpc-gateway=false");
  if (options_.tls) {
    const TlsFiles& files = TlsFiles::shared();
    const bool other = options_.otherHostCertificate;
    line.push_back("--cert-file=" + (other ? files.otherHostCertificate() : files.certificate()).string());
    line.push_back("--key-file=" + (other ? files.otherHostKey() : files.key()).string());
  }
  return line;
}

bool EtcdCluster::healthy(std::size_t node) const {
  try {
    return has(ask(node, "/health", ""), "\"true\"");
  } catch (const std::exception&) {
    return false;
  }
}

std::string EtcdCluster::ask(std::size_t node, const std::string& path, const std::string& body) const {
  std::vector<std::string> line{"curl", "--silent", "--max-time", "10"};
  if (options_.tls) {
    line.push_back("--insecure");
  }
  if (!rootToken_.empty()) line.insert(line.end(), {"--header", "Authorization: " + rootToken_});
  if (!body.empty()) line.insert(line.end(), {"--data", body});
  line.push_back((options_.tls ? "https://127.0.0.1:" : "http://127.0.0.1:") +
                 std::to_string(nodes_[node].port) + path);
  const Finished finished = runToEnd(line);
  if (finished.exitCode != 0) throw std::runtime_error("etcd does not answer " + path);
  return finished.output;
}

std::string EtcdCluster::request(const std::string& path, const std::string& body) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].process && !nodes_[i].paused) return ask(i, path, body);
  }
  throw std::runtime_error("no node of etcd runs");
}

void EtcdCluster::switchAuthenticationOn() {
  const auto must = [&](const std::string& path, const std::string& body) {
    const std::string reply = ask(0, "/v3/auth/" + path, body);
    if (!has(reply, "\"header\"")) throw std::runtime_error("etcd: " + path + ": " + reply);
  };
  must("user/add", R"({"name":"root","password":"root"})");
  must("role/add", R"({"name":"root"})");
  must("user/grant", R"({"user":"root","role":"root"})");
  must("user/add", R"({"name":"keeper","password":")" + options_.password + R"("})");
  must("role/add", R"({"name":"locks"})");
  // From /lockkeeper/ to /lockkeeper0.
  must(
      "role/grant",
      R"({"name":"locks","perm":{"permType":"READWRITE","key":"L2xvY2trZWVwZXIv","range_end":"L2xvY2trZWVwZXIw"}})");
  must("user/grant", R"({"user":"keeper","role":"locks"})");
  enableAuthentication();
}

void EtcdCluster::enableAuthentication() {
  rootToken_.clear();
  const std::string reply = ask(0, "/v3/auth/enable", "{}");
  if (!has(reply, "\"header\"")) throw std::runtime_error("etcd: auth/enable: " + reply);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    waitUntil([&] { return !has(ask(i, "/v3/kv/range", R"({"key":"YQ=="})"), "\"header\""); },
              clusterStartBound);
  }
  rootToken_ = field(ask(0, "/v3/auth/authenticate", R"({"name":"root","password":"root"})"), "token");
}

void EtcdCluster::endLogIns() {
  const std::string reply = request("/v3/auth/disable", "{}");
  if (!has(reply, "\"header\"")) throw std::runtime_error("etcd: auth/disable: " + reply);
  enableAuthentication();
}

void EtcdCluster::put(const std::string& key, const std::string& value, std::int64_t lease) const {
  const std::string reply =
      request("/v3/kv/put", R"({"key":")" + base64(key) + R"(","value":")" + base64(value) +
                                R"(","lease":")" + std::to_string(lease) + R"("})");
  if (!has(reply, "\"header\"")) throw std::runtime_error("etcd: put: " + reply);
}

bool EtcdCluster::remove(const Stored& claim) const {
  return !claim.key.empty() &&
         has(request("/v3/kv/deleterange", R"({"key":")" + claim.key + R"("})"), "\"deleted\":\"1\"");
}

std::size_t EtcdCluster::counted(const std::string& counter, const std::string& service,
                                 const std::string& method) const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].process || nodes_[i].paused) continue;
    std::istringstream lines(ask(i, "/metrics", ""));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(counter + "{") && has(line, "grpc_method=\"" + method + "\"") &&
          has(line, "grpc_service=\"etcdserverpb." + service + "\"")) {
        sum += std::stoul(line.substr(line.rfind(' ') + 1));
      }
    }
  }
  return sum;
}

std::size_t EtcdCluster::requests() const {
  return counted("grpc_server_handled_total", "KV", "Txn") +
         counted("grpc_server_handled_total", "KV", "Range");
}

std::set<std::int64_t> EtcdCluster::leases() const {
  std::string rest = request("/v3/lease/leases", "{}");
  std::set<std::int64_t> ids;
  for (std::string id = field(rest, "ID"); !id.empty(); id = field(rest, "ID")) {
    ids.insert(std::stoll(id));
    rest.erase(0, rest.find("\"ID\":\"") + 1);
  }
  return ids;
}

std::int64_t EtcdCluster::secondsLeft(std::int64_t lease) const {
  const std::string left =
      field(request("/v3/lease/timetolive", R"({"ID":")" + std::to_string(lease) + R"("})"), "TTL");
  return left.empty() ? 0 : std::stoll(left);
}

EtcdCluster::Stored EtcdCluster::claim(const std::string& lock, const std::string& order) const {
  const std::string root = "/lockkeeper/locks/" + lock;
  const std::string listed =
      request("/v3/kv/range", R"({"key":")" + base64(root + "/") + R"(","range_end":")" + base64(root + "0") +
                                  R"(","sort_order":")" + order + R"(","sort_target":"CREATE","limit":"1"})");
  if (field(listed, "create_revision").empty()) return {};
  const std::string lease = field(listed, "lease");
  return {.key = field(listed, "key"),
          .created = std::stoll(field(listed, "create_revision")),
          .lease = lease.empty() ? 0 : std::stoll(lease)};
}

std::vector<EtcdCluster::Waiting> EtcdCluster::waitingClaims() const {
  const std::string listed = request("/v3/kv/range", everyLock);
  std::set<std::string> locks;
  std::vector<Waiting> waiting;
  for (std::size_t at = listed.find("\"key\":\""); at != std::string::npos;
       at = listed.find("\"key\":\"", at + 1)) {
    const std::string key = fromBase64(field(listed.substr(at), "key"));
    const std::string value = fromBase64(field(listed.substr(at), "value"));
    const std::string root = key.substr(0, key.rfind('/'));
    const bool first = locks.insert(root).second;
    const bool share = std::count(value.begin(), value.end(), '@') == 2;
    if (share ? !value.ends_with('?') : first) continue;
    // The owner is between the token and the share.
    const std::size_t owner = value.find('@') + 1;
    waiting.push_back({root.substr(root.rfind('/') + 1),
                       owner == 0 ? "" : value.substr(owner, value.find('@', owner) - owner)});
  }
  return waiting;
}

}  // namespace lockkeeper::test
