# Installs BUILD into an empty PREFIX. With SOURCE, BUILD is first made, by the preset for packages with warnings as errors.
# The installed command must run.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(SOURCE)
  run(${CMAKE_COMMAND} -S ${SOURCE} --preset package -B ${BUILD} -D LOCKKEEPER_DEVELOPER=ON ${OPTIONS})
  run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2)
endif()
file(REMOVE_RECURSE ${PREFIX})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
run(${PREFIX}/bin/lockkeeper --version)
# What only Debian packages want is not there.
file(GLOB_RECURSE spare ${PREFIX}/share/lintian/* ${PREFIX}/share/doc/*/changelog*)
if(spare)
  message(FATAL_ERROR "an ordinary install must not have ${spare}")
endif()
