#pragma once

#include <Poco/Data/Session.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "database_server.h"

namespace lockkeeper::test {

/// A default of a server's sessions, and a value for it.
struct Setting {
  std::string variable;
  std::string value;  ///< As it stands in a SET.
};

/// The variables of a server that have a value for each session, through one session of the tests' own, whose
/// values are not changed by it.
class SessionVariables {
 public:
  explicit SessionVariables(const DatabaseServer& server);

  /// Every other value that each variable allows: all of those that can be counted, and of numbers the least,
  /// the next one and, unless it is an amount of memory, the greatest.
  std::map<std::string, std::vector<std::string>> others() const { return others_; }

  /// As the defaults of all sessions to come. False when the server does not let this be set so.
  bool set(const Setting& setting);
  void restore(std::span<const Setting> settings);

 private:
  std::vector<std::vector<std::string>> ask(const std::string& query);
  bool execute(const std::string& statement);
  void readMariadb();
  void readMysql();
  void addTexts(const std::string& variable);

  Poco::Data::Session session_;
  std::map<std::string, std::string> originals_;
  std::map<std::string, std::vector<std::string>> others_;
};

}  // namespace lockkeeper::test
