# Installs BUILD into a prefix of its own, moves that, builds tests/package against it there and runs it and the
# installed program: nothing may look back into the source tree or the build folder.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${result}")
  endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/first)
file(RENAME ${FOLDER}/first ${FOLDER}/prefix)
file(COPY ${SOURCE}/tests/package/main.cpp ${SOURCE}/tests/package/CMakeLists.txt DESTINATION ${FOLDER}/program)
run(${CMAKE_COMMAND} -S ${FOLDER}/program -B ${FOLDER}/build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=${FOLDER}/prefix)
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
# Without the source tree in sight: files are opened by path, and a trace of the calls would need tools of its own.
run(${CMAKE_COMMAND} -E env --unset=RIDGELINE_DATA ${FOLDER}/build/uses_ridgeline)
run(${CMAKE_COMMAND} -E env --unset=RIDGELINE_DATA ${FOLDER}/prefix/bin/ridgeline predict --hardware nvidia-t4 --model bert-base
    --set training.micro_batch=2 --set training.sequence_length=128 --no-advice)
execute_process(COMMAND ${CMAKE_COMMAND} -E env RIDGELINE_DATA=${FOLDER}/build ${FOLDER}/build/uses_ridgeline
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(FATAL_ERROR "RIDGELINE_DATA without descriptions was accepted")
endif()
# Only what the headers declare is exported.
execute_process(COMMAND nm -D --defined-only -C ${LIBRARY} OUTPUT_VARIABLE names)
string(REGEX MATCHALL "[^\n]+" names "${names}")
foreach(name ${names})
  if(name MATCHES " [TBDR] " AND NOT name MATCHES "ridgeline::")
    message(FATAL_ERROR "the library exports ${name}")
  endif()
endforeach()
