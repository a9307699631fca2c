# Installs the build into an empty prefix, then configures, builds and runs one consumer against it.
set(work ${BUILD}/consumer/${CONSUMER})
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The program in the README, to the letter.
file(READ ${SOURCE}/README.md readme)
if(NOT readme MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no program")
endif()
file(WRITE ${work}/readme.cpp "${CMAKE_MATCH_1}")

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/${CONSUMER} -B ${work}/build -G Ninja -D CMAKE_CXX_COMPILER=${CXX}
    -D CMAKE_PREFIX_PATH=${work}/prefix -D README_PROGRAM=${work}/readme.cpp)
run(${CMAKE_COMMAND} --build ${work}/build --verbose)
if(CONSUMER STREQUAL "core" AND output MATCHES "Poco")
  message(FATAL_ERROR "a user of core alone links Poco:\n${output}")
endif()
run(${CMAKE_COMMAND} -E chdir ${work} ${work}/build/app)
message(STATUS "${output}")
if(NOT output MATCHES "order 42 is ours")
  message(FATAL_ERROR "the program said: ${output}")
endif()
