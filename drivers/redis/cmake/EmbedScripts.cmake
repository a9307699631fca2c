# cmake -DOUTPUT=… -DSCRIPTS="a.lua;b.lua" -DFRAME=… -P EmbedScripts.cmake: a header with each script's text as a constant
# that is named after its file. A line "-- @include b.lua" stands for the text of that script, whose path counts from its folder.
# FRAME encloses each script, in place of its line "-- @script", except fenced_write, which applications send by themselves.
set(text "// Made from the files in scripts/ by EmbedScripts.cmake.\n#pragma once\n\n#include <string_view>\n\n")
string(APPEND text "namespace lockkeeper::redis::scripts {\n")
file(READ ${FRAME} frame)
foreach(script IN LISTS SCRIPTS)
  get_filename_component(name ${script} NAME_WE)
  file(READ ${script} body)
  get_filename_component(folder ${script} DIRECTORY)
  while(body MATCHES "-- @include ([a-z_/.]+\\.lua)\n")
    set(line "${CMAKE_MATCH_0}")
    file(READ ${folder}/${CMAKE_MATCH_1} part)
    string(REPLACE "${line}" "${part}" body "${body}")
  endwhile()
  if(NOT name STREQUAL fenced_write)
    string(REPLACE "-- @script\n" "${body}" body "${frame}")
  endif()
  # Without comments: Redlock sends the text with each call, and a server hashes all of it.
  string(REGEX REPLACE "(^|\n) *--[^\n]*" "" body "${body}")
  string(APPEND text "\ninline constexpr std::string_view ${name} = R\"lua(${body})lua\";\n")
endforeach()
string(APPEND text "\n}  // namespace lockkeeper::redis::scripts\n")
file(WRITE ${OUTPUT} "${text}")
