# cmake -DFOLDER=machines -DOUTPUT=file.cpp -P embed_machines.cmake: every *.toml of the folder as (name, text).
file(GLOB files ${FOLDER}/*.toml)
set(rows "")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"MEDLEY(${text})MEDLEY\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>\n#include <utility>\n#include <vector>\nnamespace medley::plan::embedded {\n"
     "extern const std::vector<std::pair<std::string_view, std::string_view>> machines;\n"
     "const std::vector<std::pair<std::string_view, std::string_view>> machines = {\n${rows}};\n}\n")
