#include "hub/cmake_config.hpp"

namespace neuron_kernels::hub {
namespace {

std::string head(const Manifest& manifest, const char* what) {
  const std::string id = manifest.identifier();
  return "# Made by `kernels build`: " + id + "::" + id + ", " + what + " of " + manifest.name + " " +
         manifest.version.text() + ".\n";
}

// Text with each @ replaced by the identifier.
std::string filled(std::string text, const std::string& id) {
  for (std::size_t at = 0; (at = text.find('@', at)) != text.npos; at += id.size()) text.replace(at, 1, id);
  return text;
}

}  // namespace

std::string cmake_config_name(const Manifest& manifest) { return manifest.identifier() + "-config.cmake"; }
std::string cmake_version_name(const Manifest& manifest) {
  return manifest.identifier() + "-config-version.cmake";
}

std::string header_config(const Manifest& manifest) {
  return head(manifest, "the headers") + filled(R"(if(NOT TARGET @::@)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  add_library(@::@ INTERFACE IMPORTED)
  target_compile_features(@::@ INTERFACE cxx_std_20)
  target_include_directories(@::@ INTERFACE "${CMAKE_CURRENT_LIST_DIR}/include")
  target_link_libraries(@::@ INTERFACE Threads::Threads)
endif()
)",
                                                manifest.identifier());
}

std::string c_config(const Manifest& manifest) {
  return head(manifest, "the shared library") + filled(R"(if(NOT TARGET @::@)
  add_library(@::@ SHARED IMPORTED)
  set_target_properties(@::@ PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/lib/lib@.so"
    IMPORTED_SONAME lib@.so
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/include")
endif()
)",
                                                       manifest.identifier());
}

std::string config_version(const Manifest& manifest) {
  const Version& v = manifest.version;
  const std::string same = std::to_string(v.major) + (v.major != 0 ? "" : "[.]" + std::to_string(v.minor));
  return "# Made by `kernels build`.\nset(PACKAGE_VERSION \"" + v.text() + "\")\nset(same_version \"^" +
         same + "([.]|$)\")\n" + R"cmake(if(NOT PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION MATCHES "${same_version}")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
)cmake";
}

}  // namespace neuron_kernels::hub
