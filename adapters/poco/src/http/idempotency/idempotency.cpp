#include "lockkeeper/poco/idempotency.h"

#include <utility>

#include "http/idempotency/answer_store.h"
#include "http/idempotency/captured_response.h"
#include "http/idempotency/idempotency_key.h"
#include "http/idempotency/idempotency_route.h"
#include "http/lock/current_lock.h"
#include "http/request_body.h"
#include "http/request_steps.h"
#include "http/route/request_path.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

class Idempotency::State final : public FilterState<State, Handler, IdempotencyRules> {
 public:
  State(std::shared_ptr<LockManager> manager, std::shared_ptr<ValueStore> answers, IdempotencyOptions options)
      : FilterState(std::move(options)),
        manager_(needed(std::move(manager), "LockManager")),
        answers_(needed(std::move(answers), "ValueStore")) {}

  LockManager& manager() { return *manager_; }
  AnswerStore& answers() { return answers_; }

 private:
  const std::shared_ptr<LockManager> manager_;
  AnswerStore answers_;
};

class Idempotency::Handler final : public FilterHandler<State, IdempotencyRules> {
 public:
  using FilterHandler::FilterHandler;

  void serve(const std::vector<std::string>& path, HTTPServerRequest& request,
             HTTPServerResponse& response) override {
    const bool passes = !isKeptMethod(request.getMethod());
    const IdempotencyRoute* route = passes ? nullptr : rules_->find(request.getMethod(), path);
    const IdempotencyKey given = route == nullptr ? IdempotencyKey{} : IdempotencyKey::in(request);
    if (route == nullptr || (!given.present && !route->required)) {
      return passOn(*handlers_, request, response);
    }
    if (!given.text) {
      return answer(request, response,
                    plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                                 "The request needs one Idempotency-Key of 1 to 255 characters."));
    }
    const std::size_t most = rules_->options().maxBody;
    Body body = readBody(request, most, rules_->options().bodyTimeout);
    if (body.end != BodyEnd::whole) return refuseBody(request, response, body.end, most);

    RequestFacts facts = rules_->facts(request, path);
    if (route->client.needsBody()) facts.json = parseJson(body.bytes);
    if (!route->client.isClear(facts)) return refuseJson(request, response);
    const auto client = route->client.clientIn(facts);
    if (!client) return serveNobody(*route, std::move(body), request, response);
    const std::string host = rules_->options().perHost ? hostOf(request) : "";
    serve({.route = *route,
           .client = route->client.text() + '\n' + *client,
           .key = "idempotency/" + route->name + "/" + digestOf(*client, host, *given.text),
           .fingerprint = fingerprintOf(request, body.bytes),
           .body = std::move(body),
           .request = request,
           .response = response});
  }

 private:
  struct Call {
    const IdempotencyRoute& route;
    std::string client;  // with where it is read from: other routes may mean others by the same text
    std::string key;
    std::string fingerprint;
    Body body;
    HTTPServerRequest& request;
    HTTPServerResponse& response;
    AnswerStore::Counted counted{};
  };

  /// A request that does not say whose it is: nobody else may be given its answer.
  void serveNobody(const IdempotencyRoute& route, Body body, HTTPServerRequest& request,
                   HTTPServerResponse& response) {
    if (route.required) {
      return answer(request, response,
                    plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                                 "A request with an Idempotency-Key must say which client it comes from."));
    }
    ReplayedRequest replayed(request, std::move(body));
    passOn(*handlers_, replayed, response);
  }

  void serve(Call call) {
    std::optional<StoredAnswer> kept;
    std::optional<Lock> lock;
    try {
      kept = find(call);
      if (!kept) lock = state_->manager().tryLock(call.key, call.route.lock);
      // Between the two, another server may have come to its end.
      if (lock) kept = find(call);
    } catch (const std::exception& error) {  // also that the store cannot give the lease
      report(call, IdempotencyEvent::storeDown, error.what());
      refused(call, HTTPResponse::HTTP_SERVICE_UNAVAILABLE);
      return refuseForNow(
          call.request, call.response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
          "The store cannot be used right now, so it is unknown whether this request was already processed.");
    }
    if (kept) return replay(call, *kept);
    if (lock && !state_->answers().hasRoom(rules_->options(), call.route, call.client)) {
      refused(call, HTTPResponse::HTTP_TOO_MANY_REQUESTS);
      return refuseForNow(call.request, call.response, HTTPResponse::HTTP_TOO_MANY_REQUESTS,
                          "Too many answers are kept for this client.", std::chrono::minutes{1});
    }
    if (lock) return run(call, *lock);
    report(call, IdempotencyEvent::inFlight);
    refused(call, HTTPResponse::HTTP_CONFLICT);
    refuseForNow(call.request, call.response, HTTPResponse::HTTP_CONFLICT,
                 "A request with this Idempotency-Key is being served.");
  }

  void replay(const Call& call, const StoredAnswer& kept) {
    if (kept.fingerprint != call.fingerprint) {
      report(call, IdempotencyEvent::reused);
      refused(call, HTTPResponse::HTTP_UNPROCESSABLE_ENTITY);
      return answer(call.request, call.response,
                    plainProblem(HTTPResponse::HTTP_UNPROCESSABLE_ENTITY,
                                 "The Idempotency-Key was used for another request."));
    }
    report(call, IdempotencyEvent::replayed);
    call.response.set("Idempotent-Replayed", "true");
    if (kept.whole) return send(call.response, kept);
    answer(call.request, call.response,
           plainProblem(HTTPResponse::HTTP_CONFLICT, "The request was carried out and answered with " +
                                                         std::to_string(kept.status) +
                                                         ", but the answer was too long to be kept."));
  }

  void run(Call& call, Lock& lock) {
    CapturedResponse captured(call.response, rules_->options().maxAnswer, [&] {
      keep(call, {.fingerprint = call.fingerprint, .status = captured.getStatus(), .whole = false});
    });
    ReplayedRequest replayed(call.request, std::move(call.body), captured);
    boundSending(call.request);
    try {
      const CurrentLock current(lock);
      passOn(*handlers_, replayed, captured);
    } catch (...) {
      // As long as the lock is valid, only this run can have kept anything.
      if (captured.spilled() && lock.valid()) forget(call);
      lock.release();
      answerForException(call.request, call.response);
      throw;
    }
    if (!captured.getKeepAlive() || !captured.sent()) call.response.setKeepAlive(false);
    // Who has sent nothing had nobody to send it to. Who was too long has sent it already.
    if (!captured.sent() || captured.spilled()) return;
    const StoredAnswer answer = captured.answer(std::move(call.fingerprint));
    keep(call, answer);
    lock.release();
    send(call.response, answer);
  }

  std::optional<StoredAnswer> find(const Call& call) {
    return state_->answers().find(rules_->options(), call.key);
  }

  /// Reports what cannot be kept.
  void keep(Call& call, const StoredAnswer& answer) noexcept {
    try {
      state_->answers().keep(rules_->options(), call.route, call.client, call.key, answer, call.counted);
    } catch (const std::exception& error) {
      report(call, IdempotencyEvent::notKept, error.what());
    } catch (...) {
      report(call, IdempotencyEvent::notKept, "isFinal has thrown");
    }
  }

  void forget(const Call& call) noexcept {
    try {
      state_->answers().forget(rules_->options(), call.client, call.key, call.counted);
    } catch (const std::exception&) {
      // It stays then: a repetition gets 409.
    }
  }

  void report(const Call& call, IdempotencyEvent event, std::string_view message = {}) const noexcept {
    tell(rules_->options().report,
         {.route = call.route.name, .event = event, .message = message, .trace = traceOf(call.request)});
  }

  void refused(const Call& call, HTTPResponse::HTTPStatus status) const noexcept {
    tellRefused(state_->manager().environment(), call.route.name, status);
  }
};

Idempotency::Idempotency(std::shared_ptr<LockManager> manager, std::shared_ptr<ValueStore> answers,
                         IdempotencyOptions options)
    : HttpFilter(std::make_shared<State>(std::move(manager), std::move(answers), std::move(options))) {}

}  // namespace lockkeeper::poco
