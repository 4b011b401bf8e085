# What `cmake --install` lays down: program, library with its headers and package file, and the descriptions they read.
include(PackageNames)
# Components are packages of their own: program (with the shared library), development, mpi, python.
include(CMakePackageConfigHelpers)
install(TARGETS ridgeline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ridgeline_library EXPORT ridgelineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT program NAMELINK_COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ridgeline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT ridgelineTargets NAMESPACE ridgeline:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ridgeline COMPONENT development)
file(WRITE ${CMAKE_BINARY_DIR}/ridgelineConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/ridgelineTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ridgelineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ridgelineConfig.cmake ${CMAKE_BINARY_DIR}/ridgelineConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ridgeline COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/hw ${CMAKE_SOURCE_DIR}/models ${CMAKE_SOURCE_DIR}/scenarios
        DESTINATION ${CMAKE_INSTALL_DATADIR}/ridgeline PATTERN "*.cu" EXCLUDE PATTERN "*.h" EXCLUDE PATTERN "*.cpp" EXCLUDE
        PATTERN "CMakeLists.txt" EXCLUDE)
# The recorder that predict --record starts, in whatever Python has PyTorch; the package of component python is for one.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/ridgeline DESTINATION ${CMAKE_INSTALL_DATADIR}/ridgeline/python FILES_MATCHING PATTERN "*.py")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/data/tools DESTINATION ${CMAKE_INSTALL_DATADIR}/ridgeline/data)
install(FILES ${CMAKE_SOURCE_DIR}/data/kernel_names.json ${CMAKE_SOURCE_DIR}/data/output_schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/ridgeline/data)

# The manual page and bash's completion, made by the program of its own commands.
set(documents ${CMAKE_BINARY_DIR}/documents)
add_custom_command(OUTPUT ${documents}/ridgeline.1.gz ${documents}/ridgeline ${documents}/changelog.gz
  COMMAND ${CMAKE_COMMAND} -E make_directory ${documents}
  COMMAND sh -c "$<TARGET_FILE:ridgeline> man | gzip -9n > ${documents}/ridgeline.1.gz"
  COMMAND sh -c "$<TARGET_FILE:ridgeline> completion bash > ${documents}/ridgeline"
  COMMAND sh -c "gzip -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${documents}/changelog.gz"
  DEPENDS ridgeline ${CMAKE_SOURCE_DIR}/CHANGELOG.md VERBATIM)
add_custom_target(ridgeline_documents ALL DEPENDS ${documents}/ridgeline.1.gz)
install(FILES ${documents}/ridgeline.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${documents}/ridgeline DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Licences of the packages in the page and the lab, which both the program and the Python package carry.
foreach(component program python)
  ridgeline_package_name(${component} package)
  install(FILES ${CMAKE_BINARY_DIR}/web/NOTICE.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} OPTIONAL)
endforeach()
# And of the libraries that are compiled into them, as Debian's packages state them.
foreach(component program python)
  ridgeline_package_name(${component} package)
  foreach(library nlohmann-json3-dev libcli11-dev libeigen3-dev libboost1.74-dev pybind11-dev)
    set(stated /usr/share/doc/${library}/copyright)
    if(EXISTS ${stated})
      install(FILES ${stated} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}/libraries RENAME ${library} COMPONENT ${component})
    endif()
  endforeach()
endforeach()
foreach(component program development mpi python)
  ridgeline_package_name(${component} package)
  if(component IN_LIST RIDGELINE_PACKAGES)
    install(FILES ${documents}/changelog.gz ${CMAKE_SOURCE_DIR}/cmake/copyright
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endif()
endforeach()
include(Package)
