#include "wire/dial/tls_context.h"

#include <Poco/Exception.h>
#include <Poco/Net/RejectCertificateHandler.h>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"

namespace lockkeeper::redis {

Poco::Net::Context::Ptr makeTlsContext(const RedisOptions& options) {
  if (!options.tls) return nullptr;
  Poco::Net::Context::Params params;
  params.caLocation = options.caFile;
  params.loadDefaultCAs = options.caFile.empty();
  // Anything less lets Poco skip the host name check for loopback addresses.
  params.verificationMode = Poco::Net::Context::VERIFY_STRICT;
  try {
    Poco::Net::Context::Ptr context = new Poco::Net::Context(Poco::Net::Context::TLS_CLIENT_USE, params);
    context->requireMinimumProtocol(Poco::Net::Context::PROTO_TLSV1_2);
    // Of our own, so that a handler which the application has set for other connections does not soften ours.
    context->setInvalidCertificateHandler(new Poco::Net::RejectCertificateHandler(false));
    return context;
  } catch (const Poco::Exception&) {
    throw ConfigError("caFile " + quoted(options.caFile) + " cannot be read as PEM certificates");
  }
}

}  // namespace lockkeeper::redis
