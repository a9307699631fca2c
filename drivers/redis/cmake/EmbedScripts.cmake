# cmake -DOUTPUT=… -DSCRIPTS="a.lua;b.lua" -P EmbedScripts.cmake: a header with each script's text as a constant that
# is named after its file.
set(text "// Made from the files in scripts/ by EmbedScripts.cmake.\n#pragma once\n\n#include <string_view>\n\n")
string(APPEND text "namespace lockkeeper::redis::scripts {\n")
foreach(script IN LISTS SCRIPTS)
  cmake_path(GET script STEM name)
  file(READ ${script} body)
  string(APPEND text "\ninline constexpr std::string_view ${name} = R\"lua(${body})lua\";\n")
endforeach()
string(APPEND text "\n}  // namespace lockkeeper::redis::scripts\n")
file(WRITE ${OUTPUT} "${text}")
