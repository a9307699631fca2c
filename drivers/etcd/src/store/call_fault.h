#pragma once

#include <Poco/JSON/Object.h>

#include <optional>
#include <string>

namespace lockkeeper::etcd {

/// What a reply that is an error means for the caller.
struct CallFault {
  enum class Kind {
    notApplied,   ///< The member has done nothing; another one may do it.
    unknown,      ///< It may have been done.
    logIn,        ///< The member has done nothing because the log-in has ended.
    noLease,      ///< There is no such lease.
    setUp,        ///< A credential, a permission or the cluster's set-up is wrong; nothing was done.
    memberSetUp,  ///< The member is set up wrongly, and has done nothing; another one may do it.
  };
  Kind kind;
  std::string text;  ///< For messages: the server's words, which repeat nothing of the request.
};

/// What the reply means; empty when it is no error. `json` is null when the body is no JSON object.
std::optional<CallFault> faultOf(int status, const Poco::JSON::Object* json);

}  // namespace lockkeeper::etcd
