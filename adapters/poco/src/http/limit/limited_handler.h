#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/filter_state.h"

namespace lockkeeper::poco::detail {

/// Serves one request: asks the limits of its route, then refuses it or passes it to the application.
class LimitedHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  using Request = Poco::Net::HTTPServerRequest;
  using Response = Poco::Net::HTTPServerResponse;
  using Handlers = Poco::Net::HTTPRequestHandlerFactory;

  LimitedHandler(std::shared_ptr<FilterState> state, std::shared_ptr<Handlers> handlers)
      : state_(std::move(state)), table_(state_->table()), handlers_(std::move(handlers)) {}

  void handleRequest(Request& request, Response& response) override;

 private:
  void limit(const Route& route, const std::vector<std::string>& path, Request& request, Response& response);
  bool admit(const Route& route, const RequestFacts& facts, Request& request, Response& response);
  void refuse(std::span<const RateTake> takes, Request& request, Response& response) const;
  void report(const Route& route, const Decision& decision) const noexcept;
  void pass(Request& request, Response& response);

  const std::shared_ptr<FilterState> state_;
  const std::shared_ptr<const RouteTable> table_;  // this request's, whatever is loaded meanwhile
  const std::shared_ptr<Handlers> handlers_;
};

}  // namespace lockkeeper::poco::detail
