// A gateway for short messages with limits on who may send how many. See README.md beside it.

#include "sample_application.h"
#include "serve.h"

namespace sms_gateway {
namespace {

class SmsGateway final : public samples::SampleApplication {
 public:
  SmsGateway()
      : SampleApplication(
            "Takes short messages over HTTP, within limits, and sends them at a constant rate.") {}

 private:
  void defineOptions(Poco::Util::OptionSet& options) override {
    SampleApplication::defineOptions(options);
    for (const auto& option :
         {flag("serve", "only take messages"), flag("work", "only send messages"),
          setting("store", "where limits, locks and queue are: memory: or redis://…", "URI",
                  "lockkeeper.store"),
          setting("port", "where to listen", "N", "smsGateway.port"),
          setting("outbox", "the file that messages are sent to", "FILE", "smsGateway.outbox")}) {
      options.addOption(option);
    }
  }

  int work() override {
    const Parts parts{.server = given("serve") || !given("work"), .worker = given("work") || !given("serve")};
    serve(parts, [this] { return readConfiguration(); });
    return EXIT_OK;
  }
};

}  // namespace
}  // namespace sms_gateway

int main(int argc, char** argv) { return sms_gateway::SmsGateway().start(argc, argv); }
