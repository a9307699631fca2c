#pragma once

#include <functional>
#include <optional>
#include <stop_token>

namespace lockkeeper::detail {

/// A stop_token that fires when one of two does. Must not be moved while its token is in use.
class EitherStop {
 public:
  EitherStop(const std::stop_token& one, std::stop_token other) {
    if (!one.stop_possible()) {
      token_ = std::move(other);
      return;
    }
    token_ = source_.emplace().get_token();
    const auto pass = [this] { source_->request_stop(); };
    first_.emplace(one, pass);
    second_.emplace(other, pass);
  }
  EitherStop(const EitherStop&) = delete;

  const std::stop_token& token() const noexcept { return token_; }

 private:
  using Pass = std::stop_callback<std::function<void()>>;

  std::optional<std::stop_source> source_;
  std::stop_token token_;
  std::optional<Pass> first_;
  std::optional<Pass> second_;
};

}  // namespace lockkeeper::detail
