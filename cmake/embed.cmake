# cmake -D SOURCE=file -D OUTPUT=file.cpp -D NAME=a_name -P embed.cmake
# writes a C++ file that defines the bytes of SOURCE as `neuron_kernels::hub::registry::NAME`.
file(READ "${SOURCE}" content)
string(CONCAT unit
  "#include <string_view>\n"
  "namespace neuron_kernels::hub::registry {\n"
  "extern const std::string_view ${NAME};\n"
  "const std::string_view ${NAME} = R\"embedded(${content})embedded\";\n"
  "}\n")
file(WRITE "${OUTPUT}" "${unit}")
