# lockkeeper_one_mysql_client()
# Refuses a machine on which Poco::DataMySQL runs on another client library than MySQL::client. Both would be in one process,
# under the same names: calls of one reach the other, with structures of another layout.
function(lockkeeper_one_mysql_client)
  if(NOT TARGET Poco::DataMySQL)
    return()
  endif()
  get_target_property(poco Poco::DataMySQL TYPE)
  get_target_property(ours MySQL::client INTERFACE_LINK_LIBRARIES)
  if(NOT CMAKE_READELF OR NOT poco STREQUAL "SHARED_LIBRARY" OR NOT ours MATCHES "\\.so[0-9.]*$")
    return()  # A static Poco::DataMySQL brings no client library of its own.
  endif()
  get_target_property(poco Poco::DataMySQL LOCATION)
  execute_process(COMMAND ${CMAKE_READELF} --dynamic ${poco} OUTPUT_VARIABLE poco_says)
  execute_process(COMMAND ${CMAKE_READELF} --dynamic ${ours} OUTPUT_VARIABLE ours_says)
  string(REGEX MATCH "NEEDED[^\n]*\\[(lib(mariadb|mysqlclient|perconaserverclient)[^]]*)" found "${poco_says}")
  set(theirs ${CMAKE_MATCH_1})
  string(REGEX MATCH "SONAME[^\n]*\\[([^]]*)" found "${ours_says}")
  if(theirs AND NOT theirs STREQUAL CMAKE_MATCH_1)
    message(FATAL_ERROR "two MySQL client libraries would be in one process: Poco's ${poco} runs on ${theirs}, and MySQL_LIBRARY "
                        "is ${ours} (${CMAKE_MATCH_1}). Set MySQL_LIBRARY and MySQL_INCLUDE_DIR to Poco's one.")
  endif()
endfunction()
