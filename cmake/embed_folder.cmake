# cmake -DFILES="a;b" -DOUTPUT=file.cpp -DNAME=list -P embed_folder.cmake: text files as a list of (stem, text).
set(rows "")
foreach(file ${FILES})
  get_filename_component(stem ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${stem}\", R\"MEDLEY_TEXT(${text})MEDLEY_TEXT\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>\n#include <utility>\n#include <vector>\nnamespace medley::embedded {\n"
     "extern const std::vector<std::pair<std::string_view, std::string_view>> ${NAME};\n"
     "const std::vector<std::pair<std::string_view, std::string_view>> ${NAME} = {\n${rows}};\n}\n")
