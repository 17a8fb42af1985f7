# cmake -DINPUT=file -DOUTPUT=file.cpp -DSYMBOL=name -P embed.cmake: a text file as a C++ string_view.
file(READ ${INPUT} text)
# GCC takes raw literals of any length; the delimiter keeps `)"` in the text harmless.
file(WRITE ${OUTPUT} "#include <string_view>\nnamespace medley::embedded {\n"
     "extern const std::string_view ${SYMBOL};\nconst std::string_view ${SYMBOL} = R\"MEDLEY_TEXT(${text})MEDLEY_TEXT\";\n}\n")
