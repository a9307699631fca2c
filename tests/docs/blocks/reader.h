#pragma once

#include <Poco/RegularExpression.h>

#include <filesystem>
#include <map>
#include <string>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"

namespace lockkeeper::test {

/// Somebody who types what the pages show, in a folder of their own, beside a Redis of their own. What would
/// change the machine is not done: the scripts in reader/ only check that it could be.
class Reader {
 public:
  Reader() {
    addProgram("report.sh", "");
    addProgram("send", "");
    addProgram("dev", PROJECT "/dev | grep -q \"^  $1 \"");  // Only whether there is such a command.
  }

  /// Runs lines of a shell. It ends at the first one that fails.
  Finished type(std::string lines, std::map<std::string, std::string> environment = {}) const {
    const std::string server = "127.0.0.1:" + std::to_string(redis_.port());
    Poco::RegularExpression("//127\\.0\\.0\\.1(:6379)?")
        .subst(lines, "//" + server, Poco::RegularExpression::RE_GLOBAL);
    Poco::RegularExpression("-h 127\\.0\\.0\\.1").subst(lines, "-p " + std::to_string(redis_.port()));
    const std::string bin = std::filesystem::path(LOCKKEEPER_COMMAND).parent_path();
    environment["PROJECT"] = PROJECT;
    ProcessOptions options;
    options.environment = environment;
    return runToEnd({"sh", "-uec",
                     "cd " + folder_.path().string() + "; PATH=" PROJECT "/tests/docs/blocks/reader:" + bin +
                         ":$PATH\n" + lines},
                    options);
  }

  /// A file in the reader's folder.
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    writeFile(path, text);
  }

 private:
  void addProgram(const std::string& name, const std::string& script) {
    writeFile(folder_ / name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  TempFolder folder_;
  RedisServer redis_;
};

}  // namespace lockkeeper::test
