# A layer is a folder of sim/: its .cpp files become one static library (or a header-only one while it has none).
function(ridgeline_sources target folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/${folder}/*.cpp)
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()

# The layers that tests spend their time in. Optimising sanitized code takes three times as long as compiling it, so
# that the preset `sanitize` does it for these alone.
set(RIDGELINE_BUSY_LAYERS units input config hardware workload network trace training_files recognition other_simulators scenario occupancy timing kernels program hierarchy
    timeline allocator memory)

# What reads files that somebody else wrote: the same preset counts their branches for the fuzz targets of tests/fuzz.
set(RIDGELINE_READING_LAYERS units input config hardware workload network trace training_files recognition other_simulators scenario allocator kernels)
set(RIDGELINE_READING_SOURCES sim/study/exercise/expression.cpp sim/study/calibration/probe_result.cpp
    sim/study/sweep/load_sweep.cpp sim/study/sweep/points_file.cpp sim/study/sweep/sweep_scenario.cpp)
if(RIDGELINE_SANITIZE)
  set_source_files_properties(${RIDGELINE_READING_SOURCES} PROPERTIES COMPILE_OPTIONS "-O1;-fsanitize=fuzzer-no-link")
endif()

# Those that read measurements and write reports: most of the compiler's time, none of a prediction's.
set(RIDGELINE_TALKING_LAYERS study report serve)

function(ridgeline_layer folder)
  cmake_parse_arguments(LAYER "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/${folder}/*.cpp)
  if(sources)
    add_library(ridgeline_${folder} STATIC ${sources})
    target_include_directories(ridgeline_${folder} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(ridgeline_${folder} PUBLIC ${LAYER_LINK})
    ridgeline_warnings(ridgeline_${folder})
    set_target_properties(ridgeline_${folder} PROPERTIES UNITY_BUILD_BATCH_SIZE 24)  # headers are most of a file's cost
    if(folder IN_LIST RIDGELINE_TALKING_LAYERS)
      target_compile_options(ridgeline_${folder} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    if(RIDGELINE_SANITIZE AND folder IN_LIST RIDGELINE_BUSY_LAYERS)
      target_compile_options(ridgeline_${folder} PRIVATE -O1)
    endif()
    if(RIDGELINE_SANITIZE AND folder IN_LIST RIDGELINE_READING_LAYERS)
      target_compile_options(ridgeline_${folder} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  else()
    add_library(ridgeline_${folder} INTERFACE)
    target_include_directories(ridgeline_${folder} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(ridgeline_${folder} INTERFACE ${LAYER_LINK})
  endif()
endfunction()
