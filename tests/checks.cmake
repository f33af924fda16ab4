# Checks that call the compilers themselves, each with g++ and with clang++: the library must need no build system.
#
# header.*        every public header compiles alone, without a warning
# example.*       every example builds with no flag but -O2, within the budget of time and memory, and runs
# compile_fail.*  code that must not compile does not, for the stated reason
# mixed_isa.*     units built with different -march flags link into one program that runs on the lower machine
# package.*       find_package and add_subdirectory work
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(gxx g++ REQUIRED)
find_program(clangxx clang++ REQUIRED)
set(alone_flags -std=c++20 ${own_code_warnings} -I ${PROJECT_SOURCE_DIR}/include)

# for_each_compiler(NAME LABEL COMMAND...): a test for each compiler; @CXX@ in the command stands for the compiler.
function(for_each_compiler name label)
  foreach(compiler IN ITEMS ${gxx} ${clangxx})
    string(REPLACE "@CXX@" "${compiler}" command "${ARGN}")
    cmake_path(GET compiler FILENAME compiler_name)
    add_test(NAME ${name}.${compiler_name} COMMAND ${command})
    set_tests_properties(${name}.${compiler_name} PROPERTIES LABELS ${label} TIMEOUT 600)
  endforeach()
endfunction()

file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/neuron_kernels/*.hpp ${PROJECT_SOURCE_DIR}/include/neuron_kernels/*/*.hpp)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^neuron_kernels/|\\.hpp$" "" name ${header})
  string(REPLACE "/" "_" file ${name})
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${file}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  for_each_compiler(header.${name} header @CXX@ ${alone_flags} -fsyntax-only ${unit})
endforeach()

file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(example IN LISTS examples)
  cmake_path(GET example STEM name)
  for_each_compiler(example.${name} example ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/checks/example.py
                    ${example} ${CMAKE_CURRENT_BINARY_DIR}/examples @CXX@ ${alone_flags})
  # Alone on the machine: a compiler that shares its core with another takes more processor time, too.
  foreach(compiler_name IN ITEMS g++ clang++)
    set_tests_properties(example.${name}.${compiler_name} PROPERTIES RUN_SERIAL ON)
  endforeach()
endforeach()

file(GLOB sources CONFIGURE_DEPENDS compile_fail/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  for_each_compiler(compile_fail.${name} check ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/checks/compile_fail.py
                    ${source} @CXX@ ${alone_flags} -I ${PROJECT_SOURCE_DIR})
endforeach()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  for_each_compiler(mixed_isa check ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/checks/mixed_isa.py
                    ${CMAKE_CURRENT_SOURCE_DIR}/mixed_isa ${CMAKE_CURRENT_BINARY_DIR} @CXX@ ${alone_flags})
endif()

add_test(NAME package.cmake
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/checks/package.py ${PROJECT_SOURCE_DIR}
                 ${PROJECT_BINARY_DIR} ${PROJECT_VERSION})
set_tests_properties(package.cmake PROPERTIES LABELS check TIMEOUT 600)
