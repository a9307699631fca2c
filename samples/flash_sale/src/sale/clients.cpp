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
#include <optional>
#include <sstream>
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
  Customer(const RushPlan& plan, std::uint16_t port, Rush& seen) : plan_(plan), port_(port), seen_(seen) {}

  /// False when it got no answer.
  bool buy(int number) {
    const auto start = Clock::now();
    const bool done = plan_.buying == Buying::order ? order(number) : reserveAndPay(number);
    if (!done) ++seen_.unanswered;
    seen_.waits.push_back(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start));
    return done;
  }

 private:
  bool order(int number) {
    const auto status = ask("/orders", wanted(number));
    if (status == HTTPResponse::HTTP_CREATED || status == HTTPResponse::HTTP_OK) ++seen_.sold;
    return status.has_value();
  }

  bool reserveAndPay(int number) {
    const auto reserved = ask("/reservations", wanted(number));
    if (reserved != HTTPResponse::HTTP_CREATED) return reserved.has_value();
    if (number % 20 == 7) {
      ++seen_.unpaid;
      return true;
    }
    const bool accepted = number % 20 != 13;
    Poco::JSON::Object payment;
    payment.set("orderId", idOf(number));
    payment.set("accepted", accepted);
    const auto paid = ask("/payments", payment);
    if (paid == HTTPResponse::HTTP_GONE) ++seen_.unpaid;  // Too late: he gets his money back.
    if (paid == HTTPResponse::HTTP_OK) ++(accepted ? seen_.sold : seen_.declined);
    return paid.has_value();
  }

  std::string idOf(int number) const { return plan_.orderPrefix + std::to_string(number); }

  Poco::JSON::Object wanted(int number) const {
    Poco::JSON::Object order;
    order.set("sku", plan_.sku);
    order.set("quantity", 1);
    order.set("orderId", idOf(number));
    return order;
  }

  /// The status of the answer that ends it, after as many tries as it takes; none when there was no such one.
  std::optional<HTTPResponse::HTTPStatus> ask(const std::string& path, const Poco::JSON::Object& body) {
    for (int attempt = 0; attempt < maxTries; ++attempt) {
      try {
        if (const auto status = tryAsk(path, body)) return status;
      } catch (const Poco::Exception&) {
        session_.reset();  // The server may have closed it.
      }
    }
    return std::nullopt;
  }

  std::optional<HTTPResponse::HTTPStatus> tryAsk(const std::string& path, const Poco::JSON::Object& body) {
    if (!session_) session_ = connect(port_);
    std::ostringstream text;
    body.stringify(text);
    HTTPRequest request(HTTPRequest::HTTP_POST, path, HTTPRequest::HTTP_1_1);
    request.setContentType("application/json");
    request.setContentLength(static_cast<std::streamsize>(text.str().size()));
    session_->sendRequest(request) << text.str() << std::flush;
    HTTPResponse response;
    std::string answer;
    Poco::StreamCopier::copyToString(session_->receiveResponse(response), answer);
    return understand(response);
  }

  std::optional<HTTPResponse::HTTPStatus> understand(const HTTPResponse& response) {
    switch (response.getStatus()) {
      case HTTPResponse::HTTP_CREATED:
      case HTTPResponse::HTTP_OK:  // Also when an earlier try was booked, whose answer got lost.
      case HTTPResponse::HTTP_GONE:
        return response.getStatus();
      case HTTPResponse::HTTP_CONFLICT:
        ++seen_.soldOut;
        return response.getStatus();
      case HTTPResponse::HTTP_LOCKED:
        ++seen_.busy;
        break;
      default:
        break;
    }
    std::this_thread::sleep_for(std::chrono::seconds(std::stoi(response.get("Retry-After", "1"))));
    return std::nullopt;
  }

  const RushPlan& plan_;
  const std::uint16_t port_;
  Rush& seen_;
  std::unique_ptr<HTTPClientSession> session_;
};

void add(Rush& total, const Rush& part) {
  total.sold += part.sold;
  total.soldOut += part.soldOut;
  total.busy += part.busy;
  total.declined += part.declined;
  total.unpaid += part.unpaid;
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
  for (std::size_t index = 0; index < seen.size(); ++index) {
    threads.emplace_back([&, index] {
      Customer customer(plan, plan.ports[index % plan.ports.size()], seen[index]);
      for (int number = next++; number < plan.orders; number = next++) {
        if (!customer.buy(number)) return;  // The shop is closed.
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
