# What Debian's dpkg-buildflags asks of a program that reads strangers' files: canaries on the stack, checked copies of the
# C library (they need an optimiser), no relocation left writable. The sanitizers check more and replace them.
if(NOT RIDGELINE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>
                      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(LINKER:-z,relro LINKER:-z,now)
endif()
