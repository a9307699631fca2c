#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lockkeeper/error.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// What is left of a command whose caller does not wait for the reply. Belongs to the multiplexer until its
/// end.
class Posted {
 public:
  virtual ~Posted() = default;

  /// The reply is there, or will not come. Called outside of the multiplexer's mutex, by a thread that has
  /// read it.
  virtual void ended() noexcept = 0;

  bool complete = false;
  Reply reply{};                                 ///< When complete. An error reply is a reply.
  std::uint64_t connection = 0;                  ///< Which connection it was sent on.
  ErrorCode code = ErrorCode::storeUnavailable;  ///< Why there is no reply.
  std::string why{};

 private:
  friend class PostedList;
  std::unique_ptr<Posted> next_;
};

/// First in, first out. Allocates nothing.
class PostedList {
 public:
  PostedList() = default;
  PostedList(PostedList&& other) noexcept
      : first_(std::move(other.first_)), last_(std::exchange(other.last_, nullptr)) {}
  ~PostedList() {
    while (first_) pop();
  }

  void push(std::unique_ptr<Posted> posted) {
    Posted* const added = posted.get();
    (first_ ? last_->next_ : first_) = std::move(posted);
    last_ = added;
  }
  /// Null when it is empty.
  std::unique_ptr<Posted> pop() {
    std::unique_ptr<Posted> first = std::move(first_);
    if (first) first_ = std::move(first->next_);
    return first;
  }

 private:
  std::unique_ptr<Posted> first_;
  Posted* last_ = nullptr;
};

}  // namespace lockkeeper::redis
