# How this repository builds its own tests, examples and benchmarks; users of the library never see it.
#
# Build types: Release (default, -O2 as users are told to build) and Sanitize (ASan and UBSan, any finding is fatal).
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_SANITIZE
    "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ccache_program ccache)
if(ccache_program)
  # The sloppiness is what ccache's manual asks for with precompiled headers; base_dir lets clones share a cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${ccache_program})
endif()

set(own_code_warnings -Wall -Wextra -Wconversion -Wshadow -Werror)

# own_code(TARGET): the library and the warnings for a target of ours; headers of others come in as system headers.
function(own_code target)
  target_link_libraries(${target} PRIVATE neuron_kernels::neuron_kernels)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${own_code_warnings})
endfunction()
