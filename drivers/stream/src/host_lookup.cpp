#include "lockkeeper/stream/host_lookup.h"

#include <Poco/Exception.h>
#include <Poco/Net/DNS.h>
#include <Poco/Net/HostEntry.h>
#include <Poco/Net/IPAddress.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/stream/stream.h"

namespace lockkeeper {

using Poco::Net::SocketAddress;

struct HostLookup::Answer {
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    if (descriptor >= 0) ::close(descriptor);
  }

  void find(const std::string& host, std::uint16_t port, const Resolver& resolve) noexcept {
    try {
      location = resolve(host, port);
      if (location.host.empty()) location.host = host;
    } catch (const Error&) {
      error = std::current_exception();
    } catch (const Poco::Exception& failure) {
      fault = failure.displayText();
    } catch (const std::exception& failure) {
      fault = failure.what();
    }
    end();
  }

  void end() noexcept {
    done.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    if (descriptor >= 0) (void)!::write(descriptor, &one, sizeof one);
  }

  int descriptor = -1;
  Location location;
  std::string fault;
  std::exception_ptr error;
  std::atomic<bool> done{false};  // when true, the three above are set
};

std::optional<Location> numericLocation(const std::string& host, std::uint16_t port) {
  Poco::Net::IPAddress address;
  if (!Poco::Net::IPAddress::tryParse(host, address)) return std::nullopt;
  return Location({SocketAddress(address, port)}, host);
}

Location resolveBySystem(const std::string& host, std::uint16_t port) {
  std::vector<SocketAddress> addresses;
  const Poco::Net::HostEntry entry = Poco::Net::DNS::hostByName(host);
  for (const Poco::Net::IPAddress& each : entry.addresses()) {
    const SocketAddress address(each, port);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const SocketAddress& address) { return address.family() == SocketAddress::IPv4; });
  return addresses;
}

HostLookup::HostLookup(const std::string& host, std::uint16_t port, const Resolver& resolve)
    : answer_(std::make_shared<Answer>()) {
  answer_->descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  try {
    if (answer_->descriptor < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    thread_ = std::thread([answer = answer_, resolve, host, port] { answer->find(host, port, resolve); });
  } catch (const std::system_error& error) {
    answer_->fault = error.what();
    answer_->end();
  }
}

HostLookup::HostLookup(Location known) : answer_(std::make_shared<Answer>()) {
  answer_->location = std::move(known);
  answer_->end();
}

HostLookup::~HostLookup() {
  if (thread_.joinable()) thread_.detach();
}

bool HostLookup::done() {
  if (!answer_->done.load(std::memory_order_acquire)) return false;
  // The thread only has to free the resolver's memory for it.
  const std::lock_guard guard(joining_);
  if (thread_.joinable()) thread_.join();
  return true;
}

int HostLookup::descriptor() const { return answer_->descriptor; }

const Location& HostLookup::location() const {
  if (answer_->error) std::rethrow_exception(answer_->error);
  if (!answer_->fault.empty()) throw StreamBroken(answer_->fault);
  return answer_->location;
}

}  // namespace lockkeeper
