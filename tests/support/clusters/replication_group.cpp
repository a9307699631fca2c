#include "replication_group.h"

#include <Poco/Data/MySQL/Utility.h>
#include <Poco/Data/Session.h>
#include <mysql/mysql.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "free_port.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

constexpr std::chrono::seconds bound{90};

std::vector<std::string> settingsOf(std::size_t index, const std::vector<std::string>& addresses) {
  std::string seeds;
  for (const std::string& each : addresses) seeds.append(seeds.empty() ? "" : ",").append(each);
  return {"--performance-schema=ON",
          "--log-bin=binlog",
          "--sync-binlog=1",
          "--server-id=" + std::to_string(index + 1),
          "--gtid-mode=ON",
          "--enforce-gtid-consistency=ON",
          "--report-host=127.0.0.1",
          "--plugin-load-add=group_replication.so",
          "--group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
          "--group-replication-start-on-boot=OFF",
          "--group-replication-local-address=" + addresses[index],
          "--group-replication-group-seeds=" + seeds,
          "--group-replication-communication-stack=XCOM",
          "--group-replication-ip-allowlist=127.0.0.1/8",
          "--group-replication-recovery-get-public-key=ON",
          "--group-replication-recovery-reconnect-interval=1",
          "--group-replication-member-expel-timeout=0"};
}

}  // namespace

ReplicationGroup::ReplicationGroup() {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < size; ++i) addresses.push_back("127.0.0.1:" + std::to_string(freePort()));
  for (std::size_t i = 0; i < size; ++i) {
    nodes_[i] = std::make_unique<DatabaseServer>(Brand::mysql, settingsOf(i, addresses));
  }
  node(0).execute("SET GLOBAL group_replication_bootstrap_group = ON");
  join(0);
  node(0).execute("SET GLOBAL group_replication_bootstrap_group = OFF");
  {
    const std::jthread second([this] { join(1); });
    join(2);
  }
  awaitAll();
}

std::string ReplicationGroup::newDatabase() {
  const std::string name = "locks_" + std::to_string(++databases_);
  DatabaseServer& first = node(primary());
  first.execute("CREATE DATABASE " + name);
  first.letClerkIn(name);
  const std::string known = "SELECT COUNT(*) FROM mysql.db WHERE db = '" + name + "'";
  for (const auto& each : nodes_) {
    if (!waitUntil([&] { return each->ask(known) == "1"; })) {
      throw std::runtime_error("a member has not heard of " + name);
    }
  }
  return name;
}

std::string ReplicationGroup::uri(const std::string& scheme, const std::string& database) const {
  std::string text = scheme + "://clerk:clerk@";
  for (const auto& each : nodes_) {
    text += (each == nodes_.front() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port());
  }
  return text + "/" + database;
}

std::optional<std::size_t> ReplicationGroup::primaryNow() const {
  for (const auto& asked : nodes_) {
    try {
      const std::string port = asked->ask(
          "SELECT member_port FROM performance_schema.replication_group_members WHERE member_role = 'PRIMARY'"
          " AND member_state = 'ONLINE'");
      for (std::size_t i = 0; i < size; ++i) {
        if (port == std::to_string(nodes_[i]->port()) && nodes_[i]->ask("SELECT @@super_read_only") == "0") {
          return i;
        }
      }
    } catch (const std::runtime_error&) {  // It is dead.
    }
  }
  return std::nullopt;
}

std::size_t ReplicationGroup::primary() const {
  std::optional<std::size_t> found;
  if (waitUntil([&] { return (found = primaryNow()).has_value(); }, bound)) return *found;
  throw std::runtime_error("the replication group has no primary: " + nodes_[0]->log());
}

void ReplicationGroup::makePrimary(std::size_t index) {
  nodes_[index]->execute("DO group_replication_set_as_primary(@@server_uuid)");
  if (!waitUntil([&] { return primaryNow() == index; }, bound)) {
    throw std::runtime_error("the node did not become the primary: " + nodes_[index]->log());
  }
}

void ReplicationGroup::run(std::size_t index, const char* statement) {
  Poco::Data::Session session("MySQL", nodes_[index]->connectionString("mysql"), 10);
  // Poco prepares all statements, and those about the group cannot be prepared.
  MYSQL* const handle = Poco::Data::MySQL::Utility::handle(session);
  if (mysql_query(handle, statement) == 0) return;
  throw std::runtime_error(std::string(mysql_error(handle)) + ": " + nodes_[index]->log());
}

void ReplicationGroup::join(std::size_t index) {
  run(index, "START GROUP_REPLICATION USER='auditor', PASSWORD='auditor'");
}

void ReplicationGroup::leave(std::size_t index) { run(index, "STOP GROUP_REPLICATION"); }

void ReplicationGroup::rejoin(std::size_t index) {
  nodes_[index]->restart();
  join(index);
  awaitAll();
}

void ReplicationGroup::awaitAll() const {
  const char* const online =
      "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'";
  for (const auto& each : nodes_) {
    if (!waitUntil([&] { return each->ask(online) == std::to_string(size); }, bound)) {
      throw std::runtime_error("the members do not find each other: " + each->log());
    }
  }
}

}  // namespace lockkeeper::test
