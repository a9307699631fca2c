#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// Runs the `lockkeeper` command against a Redis of its own, which LOCKKEEPER_STORE names.
class CommandTest : public ::testing::Test {
 protected:
  static std::vector<std::string> commandLine(const std::vector<std::string>& arguments) {
    std::vector<std::string> line{LOCKKEEPER_COMMAND};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return line;
  }

  Finished lockkeeper(const std::vector<std::string>& arguments) const {
    return runToEnd(commandLine(arguments), options());
  }

  ProcessOptions options() const {
    ProcessOptions result;
    result.environment["LOCKKEEPER_STORE"] = redis.uri();
    return result;
  }

  /// Starts `lockkeeper` in the background; its streams go to files of the folder.
  Process start(const std::vector<std::string>& arguments) const {
    ProcessOptions withFiles = options();
    withFiles.standardOutput = folder / "output";
    withFiles.standardError = folder / "errors";
    return Process(commandLine(arguments), withFiles);
  }

  /// As process 1, as in a container.
  static std::vector<std::string> inContainer(const std::vector<std::string>& command) {
    std::vector<std::string> line{"unshare", "--pid", "--fork", "--kill-child"};
    if (::geteuid() != 0) line.insert(line.end(), {"--user", "--map-root-user"});
    line.insert(line.end(), command.begin(), command.end());
    return line;
  }
  static bool hasContainers() { return runToEnd(inContainer({"true"})).exitCode == 0; }

  /// As a foreign client would hold it.
  void holdForeign(const std::string& key, int milliseconds = 600000) const {
    ASSERT_EQ(redis.command({"SET", key, "foreign", "NX", "PX", std::to_string(milliseconds)}), "OK");
  }
  bool isFree(const std::string& key) const { return redis.command({"EXISTS", key}) == "0"; }
  bool fileAppears(const std::string& name) const {
    return waitUntil([&] { return std::filesystem::exists(folder / name); });
  }
  /// Waits until some process of this library talks to the store.
  bool isConnected() const {
    return waitUntil([&] {
      return redis.command({"CLIENT", "LIST"}).find("name=lockkeeper") != std::string::npos;
    });
  }
  /// As /proc tells it: "R" running, "S" sleeping, "T" stopped.
  static std::string stateOf(pid_t process) {
    const std::string stat = readFile("/proc/" + std::to_string(process) + "/stat");
    return stat.substr(stat.rfind(')') + 2, 1);
  }
  /// The path for a command line.
  std::string file(const std::string& name) const { return folder / name; }

  RedisServer redis;
  TempFolder folder;
};

}  // namespace lockkeeper::test
