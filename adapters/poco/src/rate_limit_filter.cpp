#include "lockkeeper/poco/rate_limit_filter.h"

#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include "filter_state.h"
#include "limited_handler.h"

namespace lockkeeper::poco {
namespace {

using Poco::Net::HTTPRequestHandlerFactory;

class LimitedFactory final : public HTTPRequestHandlerFactory {
 public:
  LimitedFactory(std::shared_ptr<detail::FilterState> state,
                 std::unique_ptr<HTTPRequestHandlerFactory> handlers)
      : state_(std::move(state)), handlers_(std::move(handlers)) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
    return new detail::LimitedHandler(state_, handlers_);
  }

 private:
  const std::shared_ptr<detail::FilterState> state_;
  const std::shared_ptr<HTTPRequestHandlerFactory> handlers_;
};

}  // namespace

RateLimitFilter::RateLimitFilter(std::shared_ptr<RateLimiter> limiter,
                                 const Poco::Util::AbstractConfiguration& configuration, FilterHooks hooks)
    : state_(std::make_shared<detail::FilterState>(std::move(limiter), std::move(hooks), configuration)) {}

RateLimitFilter::RateLimitFilter(RateLimitFilter&&) noexcept = default;
RateLimitFilter& RateLimitFilter::operator=(RateLimitFilter&&) noexcept = default;
RateLimitFilter::~RateLimitFilter() = default;

void RateLimitFilter::reload(const Poco::Util::AbstractConfiguration& configuration) {
  state_->load(configuration);
}

std::unique_ptr<HTTPRequestHandlerFactory> RateLimitFilter::wrap(
    std::unique_ptr<HTTPRequestHandlerFactory> handlers) {
  return std::make_unique<LimitedFactory>(state_, std::move(handlers));
}

}  // namespace lockkeeper::poco
