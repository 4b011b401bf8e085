# `cpack -G DEB` in the build folder: ridgeline (program, shared library, descriptions), ridgeline-dev (headers, CMake's
# package file), ridgeline-mpi (sweeps under mpirun: alone in needing MPI's libraries), python3-ridgeline.
set(CPACK_PACKAGE_NAME ridgeline)
set(CPACK_PACKAGE_VENDOR "Ridgeline maintainers")
set(CPACK_PACKAGE_CONTACT "Ridgeline maintainers <maintainers@ridgeline.invalid>")
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL ${RIDGELINE_PACKAGES})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(same_version "ridgeline (= ${PROJECT_VERSION})")
function(ridgeline_package component section depends summary)
  string(TOUPPER ${component} name)
  ridgeline_package_name(${component} package)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${name}_DESCRIPTION "${summary}
Ridgeline predicts, without a GPU, how long one training step of a transformer
takes and how much memory it needs on a GPU described in YAML, and says why." PARENT_SCOPE)
endfunction()
ridgeline_package(program science "" "time and memory of a training step on a described GPU")
ridgeline_package(development libdevel "${same_version}" "headers of Ridgeline's library, and its package file for CMake")
ridgeline_package(mpi science "${same_version}, openmpi-bin" "sweeps of Ridgeline over several machines")
ridgeline_package(python python "${same_version}, python3 (>= ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}), python3-numpy"
                  "Ridgeline as a Python package")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/triggers)  # a shared library: ldconfig
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "ridgeline-mpi, python3-ridgeline")
include(CPack)
