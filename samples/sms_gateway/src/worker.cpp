#include "worker.h"

#include <Poco/Exception.h>
#include <Poco/UUIDGenerator.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

#include "lockkeeper/error.h"

namespace sms_gateway {
namespace {

using lockkeeper::Lock;
using std::chrono::steady_clock;

constexpr std::chrono::seconds pollTime{1};
constexpr std::chrono::microseconds recovery{std::chrono::milliseconds{250}};

std::string lockOf(const std::string& worker) { return "worker:" + worker; }

void complain(const std::string& what) { std::cerr << "sms_gateway: worker: " + what + '\n'; }

void pause(std::chrono::nanoseconds length, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, length, [] { return false; });
}

}  // namespace

Worker::Worker(const Settings& settings, const lockkeeper::poco::LockServices& services, JobQueue& queue,
               Outbox& outbox)
    : settings_(settings),
      locks_(services.locks()),
      limits_(services.limits()),
      sending_(services.livePolicy("sending")),
      queue_(queue),
      outbox_(outbox) {
  if (sending_.now().law().kind == lockkeeper::RateKind::leakyQueue) return;
  throw lockkeeper::ConfigError(
      "lockkeeper.limits.sending.kind must be leaky-queue, since messages wait for their turn");
}

void Worker::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      live(stop);
      continue;
    } catch (const Poco::Exception& error) {
      complain(error.displayText());
    } catch (const std::exception& error) {
      complain(error.what());
    }
    pause(recovery, stop);
  }
}

/// One life: under one name, until it is told to stop or has lost the lock.
void Worker::live(const std::stop_token& stop) {
  name_ = Poco::UUIDGenerator::defaultGenerator().createRandom().toString();
  // Before the name is known to anybody: who is known and has no lock is dead.
  const Lock alive = locks_.lock(
      lockOf(name_), {.ttl = settings_.workerLease, .waitFor = std::chrono::milliseconds{0}, .stop = stop});
  queue_.enter(name_);
  while (!stop.stop_requested() && alive.valid()) {
    try {
      step(alive, stop);
    } catch (const QueueDown& error) {
      complain(error.what());
      pause(recovery, stop);
    }
  }
  if (!alive.valid()) return complain("was taken for dead, and starts anew");
  queue_.takeBack(name_);
}

void Worker::step(const Lock& alive, const std::stop_token& stop) {
  takeBackFromTheDead();
  const auto job = queue_.take(name_, pollTime);
  if (!job) return;
  // It may be that only the answer to done() was lost.
  if (job->ticket.empty() || job->ticket != sent_) {
    if (!deliver(*job, alive, stop)) return;
    sent_ = job->ticket;
  }
  if (!queue_.done(name_, *job)) complain(job->message.id + " will be sent again");
}

/// Waits for this message's turn: all workers of all processes stand in one line.
bool Worker::deliver(const Job& job, const Lock& alive, const std::stop_token& stop) {
  lockkeeper::RateSlot slot = limits_.reserve("all", sending_);
  if (!slot) {  // The line is full, or the store is down. It holds the message still, and tries again.
    pause(slot.decision().outage ? recovery : std::min(recovery, slot.decision().retryAfter), stop);
    return false;
  }
  if (!slot.wait(stop)) {
    slot.giveBack();
    return false;
  }
  if (!alive.valid()) return false;  // Somebody else has the message by now.
  outbox_.send(job);
  return true;
}

void Worker::takeBackFromTheDead() {
  if (steady_clock::now() - lastLook_ < settings_.workerLease / 2) return;
  lastLook_ = steady_clock::now();
  for (const auto& other : queue_.workers()) {
    if (other != name_ && locks_.tryLock(lockOf(other))) queue_.takeBack(other);
  }
}

}  // namespace sms_gateway
