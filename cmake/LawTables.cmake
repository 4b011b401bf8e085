# The fitted constants of data/laws/*.yaml as C++ (fit/generate_tables.cpp): sim/timing/tables/*.inc of the build folder,
# those of collectives in a folder of their own layer.
add_executable(generate_tables ${CMAKE_SOURCE_DIR}/fit/generate_tables.cpp)
target_link_libraries(generate_tables PRIVATE ridgeline_yaml)
set_target_properties(generate_tables PROPERTIES UNITY_BUILD OFF)
ridgeline_warnings(generate_tables)

set(RIDGELINE_TABLES ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${RIDGELINE_TABLES}/sim/timing/tables ${RIDGELINE_TABLES}/sim/network/tables)
file(GLOB laws CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/data/laws/*.yaml)
set(tables)
foreach(law ${laws})
  get_filename_component(table ${law} NAME_WE)
  set(layer timing)
  if(table MATCHES "^(network|overlap|collective_range)$")
    set(layer network)
  endif()
  set(inc ${RIDGELINE_TABLES}/sim/${layer}/tables/${table}.inc)
  set(fields ${RIDGELINE_TABLES}/sim/${layer}/tables/${table}_fields.inc)
  add_custom_command(OUTPUT ${inc} ${fields} COMMAND generate_tables ${law} ${inc} ${fields}
                     DEPENDS ${law} generate_tables COMMENT "Constants of ${table}" VERBATIM)
  list(APPEND tables ${inc} ${fields})
endforeach()
add_custom_target(law_tables DEPENDS ${tables})

# What includes them: builds them first.
function(ridgeline_uses_tables target)
  target_include_directories(${target} PUBLIC ${RIDGELINE_TABLES})
  add_dependencies(${target} law_tables)
endfunction()
