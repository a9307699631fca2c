#include "shared_redis.h"

namespace lockkeeper::bench {

std::int64_t SharedRedis::ask(Words words) {
  Call own;
  std::unique_lock held(mutex_);
  connection_.add(words);
  connection_.send();
  calls_.push_back(&own);
  while (!own.answer && isRead_) own.toldOrToRead.wait(held);
  if (!own.answer) readUntilAnswered(own, held);
  return *own.answer;
}

void SharedRedis::readUntilAnswered(const Call& own, std::unique_lock<std::mutex>& held) {
  isRead_ = true;
  while (!own.answer) {
    held.unlock();
    connection_.read();
    held.lock();
    while (const auto answer = connection_.received()) {
      calls_.front()->answer = answer;
      calls_.front()->toldOrToRead.notify_one();
      calls_.pop_front();
    }
  }
  isRead_ = false;
  if (!calls_.empty()) calls_.front()->toldOrToRead.notify_one();
}

}  // namespace lockkeeper::bench
