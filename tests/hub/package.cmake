# Tests of packages: versions, manifest, resolver, lock file, signatures. One test program per file.
foreach(name IN ITEMS lock manifest ndjson_body resolve signature version)
  add_executable(test_hub_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.cpp)
  test_program(test_hub_${name})
  target_link_libraries(test_hub_${name} PRIVATE hub)
  add_test(NAME hub.${name} COMMAND test_hub_${name})
  set_tests_properties(hub.${name} PROPERTIES LABELS hub TIMEOUT 300)
endforeach()
