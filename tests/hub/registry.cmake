# Tests of the registry that need no client: bodies that stream in, formats, accounts, tickets, objects, git.
foreach(name IN ITEMS accounts git ndjson objects tickets xet)
  add_executable(test_registry_${name} ${CMAKE_CURRENT_LIST_DIR}/test_registry_${name}.cpp)
  test_program(test_registry_${name})
  target_link_libraries(test_registry_${name} PRIVATE hub)
  add_test(NAME registry.${name} COMMAND test_registry_${name})
  set_tests_properties(registry.${name} PROPERTIES LABELS hub TIMEOUT 300)
endforeach()
