#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// The noticeboards of a MemoryDriver. Thread-safe.
class MemoryNotices {
 public:
  explicit MemoryNotices(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  std::vector<Notice> pin(std::string_view board, std::string_view name, std::string_view text,
                          std::optional<std::chrono::milliseconds> keep);
  std::vector<Notice> notices(std::string_view board);
  bool replace(std::string_view board, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text);
  void unpin(std::string_view board, std::string_view name);

 private:
  struct Pinned {
    std::string text;
    Instant since;
    Instant end;
  };
  using Board = std::map<std::string, Pinned, std::less<>>;

  Board& current(std::string_view board);
  std::vector<Notice> contents(const Board& board) const;

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::map<std::string, Board, std::less<>> boards_;
};

}  // namespace lockkeeper::detail
