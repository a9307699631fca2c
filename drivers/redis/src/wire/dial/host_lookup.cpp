#include "wire/dial/host_lookup.h"

#include <Poco/Exception.h>
#include <Poco/Net/IPAddress.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <system_error>
#include <thread>

#include "wire/dial/stream.h"

namespace lockkeeper::redis {

struct HostLookup::Answer {
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    if (descriptor >= 0) ::close(descriptor);
  }

  void find(const std::string& host, std::uint16_t port) noexcept {
    try {
      address = Poco::Net::SocketAddress(host, port);
    } catch (const Poco::Exception& error) {
      fault = error.displayText();
    } catch (const std::exception& error) {
      fault = error.what();
    }
    done.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    if (descriptor >= 0) (void)!::write(descriptor, &one, sizeof one);
  }

  int descriptor = -1;
  Poco::Net::SocketAddress address;
  std::string fault;
  std::atomic<bool> done{false};  // the two above are set by then
};

HostLookup::HostLookup(const std::string& host, std::uint16_t port) : answer_(std::make_shared<Answer>()) {
  Poco::Net::IPAddress numeric;
  if (Poco::Net::IPAddress::tryParse(host, numeric)) {
    answer_->find(host, port);
    return;
  }
  answer_->descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (answer_->descriptor < 0) throw StreamBroken(std::generic_category().message(errno));
  try {
    std::thread([answer = answer_, host, port] { answer->find(host, port); }).detach();
  } catch (const std::system_error& error) {
    throw StreamBroken(error.what());
  }
}

bool HostLookup::done() const { return answer_->done.load(std::memory_order_acquire); }

int HostLookup::descriptor() const { return answer_->descriptor; }

Poco::Net::SocketAddress HostLookup::address() const {
  if (!answer_->fault.empty()) throw StreamBroken(answer_->fault);
  return answer_->address;
}

}  // namespace lockkeeper::redis
