#include "lockkeeper/poco/rate_limit_filter.h"

#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include "http/filter_state.h"
#include "http/limit/limited_handler.h"
#include "http/request_steps.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequestHandlerFactory;

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
  return std::make_unique<HandlerFactory<detail::LimitedHandler, detail::FilterState>>(state_,
                                                                                       std::move(handlers));
}

}  // namespace lockkeeper::poco
