#include "http/lock/hang_up_watch.h"

#include <Poco/Error.h>
#include <Poco/Exception.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace lockkeeper::poco {

namespace {

constexpr std::uint64_t wakeUp = 0;

int checked(int result, const char* what) {
  if (result < 0) throw Poco::SystemException(what, Poco::Error::getMessage(errno));
  return result;
}

void add(int epoll, int descriptor, std::uint32_t events, std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  checked(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event), "cannot watch a socket");
}

}  // namespace

HangUpWatch::Client::Client(HangUpWatch& watch, int socket) : watch_(watch), socket_(socket) {
  const std::lock_guard held(watch_.mutex_);
  if (!watch_.thread_.joinable()) watch_.thread_ = std::thread([&watch] { watch.run(); });
  id_ = ++watch_.lastId_;
  // Once: a connection that has hung up stays so, and would wake the thread again and again.
  add(watch_.epoll_, socket_, EPOLLRDHUP | EPOLLONESHOT, id_);
  watch_.clients_.emplace(id_, stop_);
}

HangUpWatch::Client::~Client() {
  const std::lock_guard held(watch_.mutex_);
  epoll_ctl(watch_.epoll_, EPOLL_CTL_DEL, socket_, nullptr);
  watch_.clients_.erase(id_);
}

HangUpWatch::HangUpWatch()
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "cannot watch sockets")),
      wake_(checked(eventfd(0, EFD_CLOEXEC), "cannot watch sockets")) {
  add(epoll_, wake_, EPOLLIN, wakeUp);
}

HangUpWatch::~HangUpWatch() {
  const std::uint64_t one = 1;
  // It cannot fail: the counter was 0.
  static_cast<void>(!write(wake_, &one, sizeof one));
  if (thread_.joinable()) thread_.join();
  close(wake_);
  close(epoll_);
}

void HangUpWatch::run() {
  for (;;) {
    epoll_event event{};
    if (epoll_wait(epoll_, &event, 1, -1) < 1) continue;  // a signal
    const std::uint64_t id = event.data.u64;              // a copy: the kernel packs its events
    if (id == wakeUp) return;
    std::optional<std::stop_source> stop;
    {
      const std::lock_guard held(mutex_);
      const auto client = clients_.find(id);
      if (client != clients_.end()) stop = client->second;
    }
    // Outside: whoever waits takes his own mutexes.
    if (stop) stop->request_stop();
  }
}

}  // namespace lockkeeper::poco
