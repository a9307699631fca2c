#include "sale/clients.h"

#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/NetException.h>
#include <Poco/StreamCopier.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace flash_sale {
namespace {

using Poco::Net::HTTPClientSession;
using Poco::Net::HTTPRequest;
using Poco::Net::HTTPResponse;
using Clock = std::chrono::steady_clock;

constexpr int maxTries = 10;
constexpr int timeoutSeconds = 30;

std::unique_ptr<HTTPClientSession> connect(std::uint16_t port) {
  Poco::Net::StreamSocket socket(Poco::Net::SocketAddress("127.0.0.1", port));
  socket.setNoDelay(true);  // Head and body leave in two writes.
  auto session = std::make_unique<HTTPClientSession>(socket);
  session->setKeepAlive(true);
  session->setTimeout(Poco::Timespan(timeoutSeconds, 0));
  return session;
}

class Customer {
 public:
  Customer(const RushPlan& plan, Rush& seen) : plan_(plan), seen_(seen) {}

  /// False when it got no answer.
  bool order(int number) {
    const auto start = Clock::now();
    bool done = false;
    for (int attempt = 0; attempt < maxTries && !done; ++attempt) {
      try {
        done = tryOrder(number);
      } catch (const Poco::Exception&) {
        session_.reset();  // The server may have closed it.
      }
    }
    if (!done) ++seen_.unanswered;
    seen_.waits.push_back(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start));
    return done;
  }

 private:
  bool tryOrder(int number) {
    if (!session_) session_ = connect(plan_.port);
    Poco::JSON::Object order;
    order.set("sku", plan_.sku);
    order.set("quantity", 1);
    order.set("orderId", plan_.orderPrefix + std::to_string(number));
    std::ostringstream body;
    order.stringify(body);

    HTTPRequest request(HTTPRequest::HTTP_POST, "/orders", HTTPRequest::HTTP_1_1);
    request.setContentType("application/json");
    request.setContentLength(static_cast<std::streamsize>(body.str().size()));
    session_->sendRequest(request) << body.str() << std::flush;
    HTTPResponse response;
    std::string text;
    Poco::StreamCopier::copyToString(session_->receiveResponse(response), text);
    return understand(response);
  }

  bool understand(const HTTPResponse& response) {
    switch (response.getStatus()) {
      case HTTPResponse::HTTP_CREATED:
      case HTTPResponse::HTTP_OK:  // Booked by an earlier try, whose answer got lost.
        ++seen_.sold;
        return true;
      case HTTPResponse::HTTP_CONFLICT:
        ++seen_.soldOut;
        return true;
      case HTTPResponse::HTTP_LOCKED:
        ++seen_.busy;
        break;
      default:
        break;
    }
    std::this_thread::sleep_for(std::chrono::seconds(std::stoi(response.get("Retry-After", "1"))));
    return false;
  }

  const RushPlan& plan_;
  Rush& seen_;
  std::unique_ptr<HTTPClientSession> session_;
};

void add(Rush& total, const Rush& part) {
  total.sold += part.sold;
  total.soldOut += part.soldOut;
  total.busy += part.busy;
  total.unanswered += part.unanswered;
  total.waits.insert(total.waits.end(), part.waits.begin(), part.waits.end());
}

}  // namespace

Rush rush(const RushPlan& plan, std::atomic<int>& answered) {
  std::atomic<int> next = 0;
  std::vector<Rush> seen(static_cast<std::size_t>(plan.customers));
  std::vector<std::thread> threads;
  threads.reserve(seen.size());
  const auto start = Clock::now();
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      Customer customer(plan, mine);
      for (int number = next++; number < plan.orders; number = next++) {
        if (!customer.order(number)) return;  // The shop is closed.
        ++answered;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Rush total;
  total.took = Clock::now() - start;
  for (const auto& part : seen) add(total, part);
  std::ranges::sort(total.waits);
  return total;
}

std::int64_t levelOverHttp(std::uint16_t port, const std::string& sku) {
  const auto session = connect(port);
  HTTPRequest request(HTTPRequest::HTTP_GET, "/stock/" + sku, HTTPRequest::HTTP_1_1);
  session->sendRequest(request);
  HTTPResponse response;
  std::istream& body = session->receiveResponse(response);
  if (response.getStatus() != HTTPResponse::HTTP_OK) throw Poco::Net::HTTPException(response.getReason());
  Poco::JSON::Parser parser;
  return parser.parse(body).extract<Poco::JSON::Object::Ptr>()->getValue<std::int64_t>("level");
}

}  // namespace flash_sale
