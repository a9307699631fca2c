#include "memory/memory_notices.h"

namespace lockkeeper::detail {

MemoryNotices::Board& MemoryNotices::current(std::string_view board) {
  Board& found = boards_.try_emplace(std::string(board)).first->second;
  std::erase_if(found, [now = clock_->now()](const auto& entry) { return entry.second.end <= now; });
  return found;
}

std::vector<Notice> MemoryNotices::contents(const Board& board) const {
  std::vector<Notice> all;
  for (const auto& [name, pinned] : board) {
    all.push_back({name, pinned.text,
                   std::chrono::duration_cast<std::chrono::milliseconds>(clock_->now() - pinned.since)});
  }
  return all;
}

std::vector<Notice> MemoryNotices::pin(std::string_view board, std::string_view name, std::string_view text,
                                       std::optional<std::chrono::milliseconds> keep) {
  const std::lock_guard held(mutex_);
  Board& pinned = current(board);
  const Instant now = clock_->now();
  const Instant end = keep ? saturatingAdd(now, *keep) : Instant::max();
  pinned.insert_or_assign(std::string(name), Pinned{std::string(text), now, end});
  return contents(pinned);
}

std::vector<Notice> MemoryNotices::notices(std::string_view board) {
  const std::lock_guard held(mutex_);
  return contents(current(board));
}

bool MemoryNotices::replace(std::string_view board, std::string_view name,
                            const std::optional<std::string>& expected, std::string_view text) {
  const std::lock_guard held(mutex_);
  Board& pinned = current(board);
  const auto found = pinned.find(name);
  const bool same =
      expected ? found != pinned.end() && found->second.text == *expected : found == pinned.end();
  if (!same) return false;
  pinned.insert_or_assign(std::string(name), Pinned{std::string(text), clock_->now(), Instant::max()});
  return true;
}

void MemoryNotices::unpin(std::string_view board, std::string_view name) {
  const std::lock_guard held(mutex_);
  Board& pinned = current(board);
  if (const auto found = pinned.find(name); found != pinned.end()) pinned.erase(found);
}

}  // namespace lockkeeper::detail
