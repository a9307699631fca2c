#include "sale/servers.h"

#include <Poco/Pipe.h>
#include <Poco/PipeStream.h>
#include <Poco/Process.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

namespace flash_sale {
namespace {

const std::string beforePort = "http://127.0.0.1:";

}  // namespace

/// `flash_sale --serve`, with the options of this process.
class Servers::Process {
 public:
  Process(const Settings& settings, std::optional<lockkeeper::inventory::Way> way)
      : handle_(launch(settings, way, output_)), lines_(output_) {}
  ~Process() {
    Poco::Process::requestTermination(handle_.id());
    handle_.wait();
    if (reader_.joinable()) reader_.join();
  }

  /// Blocks until it serves.
  std::uint16_t port() {
    std::uint16_t port = 0;
    for (std::string line; port == 0 && std::getline(lines_, line);) {
      const auto at = line.find(beforePort);
      if (at != std::string::npos) {
        port = static_cast<std::uint16_t>(std::stoi(line.substr(at + beforePort.size())));
      }
    }
    // It must never wait for somebody to read what it says.
    reader_ = std::thread([this] { lines_.ignore(std::numeric_limits<std::streamsize>::max()); });
    if (port == 0) throw std::runtime_error("a process of the sale has ended before it served");
    return port;
  }

 private:
  static Poco::ProcessHandle launch(const Settings& settings, std::optional<lockkeeper::inventory::Way> way,
                                    Poco::Pipe& output) {
    Poco::Process::Args arguments(settings.command.begin() + 1, settings.command.end());
    arguments.insert(arguments.end(), {"--serve", "--port=0", std::string("--way=") + nameOf(way)});
    if (settings.temporary) arguments.push_back("--database=" + settings.database);
    return Poco::Process::launch(settings.command.front(), arguments, nullptr, &output, nullptr);
  }

  Poco::Pipe output_;
  Poco::ProcessHandle handle_;
  Poco::PipeInputStream lines_;
  std::thread reader_;
};

Servers::Servers(const Settings& settings, lockkeeper::LockManager& locks,
                 std::optional<lockkeeper::inventory::Way> way) {
  if (settings.processes == 1) {
    shop_ = openShop(settings, locks, way);
    here_.emplace(*shop_, 0, settings.customers + 1);
    ports_.push_back(here_->port());
    return;
  }
  for (int i = 0; i < settings.processes; ++i) {
    processes_.push_back(std::make_unique<Process>(settings, way));
  }
  for (const auto& each : processes_) ports_.push_back(each->port());
}

Servers::~Servers() = default;

}  // namespace flash_sale
