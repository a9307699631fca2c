#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Util/AbstractConfiguration.h>
#include <Poco/Util/Application.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionSet.h>

#include <string>
#include <utility>

namespace samples {

using Configuration = Poco::AutoPtr<Poco::Util::AbstractConfiguration>;

/// What the samples have in common, none of it about locks: --help, a settings file, and one line on stderr
/// for whatever goes wrong.
class SampleApplication : public Poco::Util::Application {
 public:
  /// `purpose` is shown by --help.
  explicit SampleApplication(std::string purpose) : purpose_(std::move(purpose)) {}

  /// All that main() has to do. Returns the exit code, one of sysexits.h.
  int start(int argc, char** argv);

 protected:
  void defineOptions(Poco::Util::OptionSet& options) override;

  /// --NAME=ARGUMENT on the command line is the setting `key`.
  static Poco::Util::Option setting(const char* name, const char* text, const char* argument,
                                    const char* key);
  /// --NAME is asked for by given().
  static Poco::Util::Option flag(const char* name, const char* text);
  bool given(const std::string& flag) const { return config().has(flag); }

  /// The command line and, below it, the file as it is now: that of --config, or PROGRAM.properties beside
  /// the program. Throws lockkeeper::ConfigError when there is no such file.
  Configuration readConfiguration() const;

  /// What the program does. Exceptions end it; a lockkeeper::ConfigError with EXIT_CONFIG.
  virtual int work() = 0;

 private:
  int main(const ArgVec& arguments) final;
  int help() const;
  int report() const;

  const std::string purpose_;
};

}  // namespace samples
