# The public library: sim/library over all layers, as one shared object with the names of include/ridgeline alone.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sim/library/*.cpp)
add_library(ridgeline_facade OBJECT ${sources})
target_include_directories(ridgeline_facade PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(ridgeline_facade PRIVATE ridgeline_report)
target_compile_definitions(ridgeline_facade PRIVATE RIDGELINE_VERSION="${PROJECT_VERSION}")
set_target_properties(ridgeline_facade PROPERTIES UNITY_BUILD OFF)
ridgeline_warnings(ridgeline_facade)
add_dependencies(ridgeline_facade ridgeline_revision)
target_include_directories(ridgeline_facade PRIVATE ${CMAKE_BINARY_DIR}/generated)

add_library(ridgeline_library SHARED $<TARGET_OBJECTS:ridgeline_facade>)
add_library(ridgeline::ridgeline ALIAS ridgeline_library)
target_include_directories(ridgeline_library
  PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(ridgeline_library PRIVATE ridgeline_report)
target_compile_features(ridgeline_library PUBLIC cxx_std_20)
# No name of a library linked in is seen from outside, and none that is not used is loaded (MPI).
target_link_options(ridgeline_library PRIVATE LINKER:--exclude-libs,ALL LINKER:--as-needed)
if(NOT RIDGELINE_SANITIZE)  # a sanitizer's functions come from the program that loads it
  target_link_options(ridgeline_library PRIVATE LINKER:--no-undefined)
endif()
set_target_properties(ridgeline_library PROPERTIES OUTPUT_NAME ridgeline EXPORT_NAME ridgeline LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# Sweeps under mpirun, loaded only there.
if(RIDGELINE_WITH_MPI)
  add_library(ridgeline_with_mpi MODULE ${CMAKE_SOURCE_DIR}/sim/mpi/mpi_ranks.cpp)
  target_include_directories(ridgeline_with_mpi PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(ridgeline_with_mpi PRIVATE ridgeline_study ridgeline_mpi)
  target_link_options(ridgeline_with_mpi PRIVATE LINKER:--exclude-libs,ALL LINKER:--as-needed)
  set_target_properties(ridgeline_with_mpi PROPERTIES OUTPUT_NAME ridgeline_mpi UNITY_BUILD OFF
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  ridgeline_warnings(ridgeline_with_mpi)
  install(TARGETS ridgeline_with_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ridgeline COMPONENT mpi)
endif()

# The Python package, where Python's headers and pybind11 are. `python/wheel_backend.py` asks for it alone.
option(RIDGELINE_PYTHON "Build the Python package where pybind11 is installed" ON)
if(RIDGELINE_PYTHON)
  if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)  # whose packages `dev` installs
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
  find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
  set(PYBIND11_FINDPYTHON OFF)
  set(PYTHON_EXECUTABLE ${Python3_EXECUTABLE})
  find_package(pybind11 QUIET)
endif()
if(RIDGELINE_PYTHON AND pybind11_FOUND AND Python3_Development.Module_FOUND)
  pybind11_add_module(_ridgeline MODULE NO_EXTRAS ${CMAKE_SOURCE_DIR}/python/module.cpp $<TARGET_OBJECTS:ridgeline_facade>)
  target_include_directories(_ridgeline PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(_ridgeline PRIVATE ridgeline_report)
  target_link_options(_ridgeline PRIVATE LINKER:--exclude-libs,ALL LINKER:--as-needed)
  # Beside a copy of the Python files, so that build/python is a place to import from.
  set(python_folder ${CMAKE_BINARY_DIR}/python/ridgeline)
  set_target_properties(_ridgeline PROPERTIES UNITY_BUILD OFF LIBRARY_OUTPUT_DIRECTORY ${python_folder})
  file(GLOB_RECURSE python_files RELATIVE ${CMAKE_SOURCE_DIR}/python/ridgeline CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/python/ridgeline/*.py ${CMAKE_SOURCE_DIR}/python/ridgeline/*.pyi ${CMAKE_SOURCE_DIR}/python/ridgeline/py.typed)
  set(python_copies)
  foreach(file ${python_files})
    add_custom_command(OUTPUT ${python_folder}/${file} DEPENDS ${CMAKE_SOURCE_DIR}/python/ridgeline/${file}
                       COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/python/ridgeline/${file} ${python_folder}/${file})
    list(APPEND python_copies ${python_folder}/${file})
  endforeach()
  add_custom_target(ridgeline_python_files ALL DEPENDS ${python_copies})
  add_dependencies(_ridgeline ridgeline_python_files)
  set(RIDGELINE_PYTHON_FOLDER lib/python3/dist-packages CACHE STRING "Where the Python package is installed, below the prefix")
  install(TARGETS _ridgeline LIBRARY DESTINATION ${RIDGELINE_PYTHON_FOLDER}/ridgeline COMPONENT python)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/ridgeline DESTINATION ${RIDGELINE_PYTHON_FOLDER} COMPONENT python
          PATTERN __pycache__ EXCLUDE)
endif()
