# The page of --html and the lab of `ridgeline serve`: web/ bundled with npm's packages, where npm is.
option(RIDGELINE_PAGE "Bundle the page of --html where npm is" ON)
find_program(NPM_PROGRAM npm)
function(ridgeline_page)
  if(NOT RIDGELINE_PAGE OR NOT NPM_PROGRAM)
    message(STATUS "no npm: this build has no --html")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/web)
  add_custom_target(ridgeline_page_bundle BYPRODUCTS ${folder}/page.html ${folder}/lab.html ${folder}/lab.js ${folder}/lab.css
                    ${folder}/NOTICE.txt
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}/web -DFOLDER=${folder} -DNPM=${NPM_PROGRAM} -P ${CMAKE_SOURCE_DIR}/cmake/BundlePage.cmake
    COMMENT "The page of --html and the lab")
  add_dependencies(ridgeline_report ridgeline_page_bundle)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/sim/report/page/page.cpp PROPERTIES
    OBJECT_DEPENDS ${folder}/page.html COMPILE_DEFINITIONS RIDGELINE_PAGE_FILE="${folder}/page.html")
  add_dependencies(ridgeline_serve ridgeline_page_bundle)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/sim/serve/assets.cpp PROPERTIES
    OBJECT_DEPENDS "${folder}/lab.html;${folder}/lab.js;${folder}/lab.css"
    COMPILE_DEFINITIONS RIDGELINE_LAB_FOLDER="${folder}")
endfunction()
