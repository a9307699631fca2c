# Run by cpack on the files of each package before they are packed. Below /usr the loader finds the libraries, so programs and
# libraries name no folder; manual pages and changelogs are compressed, without a time.
if(NOT CPACK_PACKAGE_CONTACT)
  message(FATAL_ERROR "Who makes the packages? Set DEBFULLNAME and DEBEMAIL, or git's user.name and user.email, and configure anew")
endif()
foreach(folder IN ITEMS bin lib)
  file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/*/usr/${folder}/*lockkeeper*)
  foreach(program IN LISTS programs)
    if(NOT IS_SYMLINK ${program} AND program MATCHES "(/bin/|\\.so\\.)")
      file(RPATH_REMOVE FILE ${program})
    endif()
  endforeach()
endforeach()

file(GLOB_RECURSE texts ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.1 ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog)
foreach(text IN LISTS texts)
  execute_process(COMMAND gzip -9nf ${text} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
