# Writes HEADER with the revision of SOURCE, where it is another one: "7c051c8" or "7c051c8 and changes".
cmake_policy(SET CMP0053 NEW)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short HEAD OUTPUT_VARIABLE revision ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  set(revision "not known")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND revision " and changes")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define RIDGELINE_REVISION \"@revision@\"\n" @ONLY)
