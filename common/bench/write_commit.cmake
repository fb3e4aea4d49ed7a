# cmake -D SOURCE_DIR=... -D OUTPUT=... -P write_commit.cmake
# Writes a header with the commit; leaves it alone when nothing changed, so that nothing is compiled again.
# Changed measurements, and the tables made from them, do not make a build dirty: recording one day must not spoil the next.
# In the sandbox of ./course grade neither git's files nor this build can be written, and the commit is that of the lesson.
if(DEFINED ENV{COURSE_SANDBOX})
  return()
endif()
set(commit "unknown")
find_program(git NAMES git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit "${hash}")
    execute_process(COMMAND ${git} -C ${SOURCE_DIR} status --porcelain --untracked-files=no -- . ":(exclude)docs/measurements" ":(exclude)docs/measured" ":(exclude)*README.md"
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()

set(text "#pragma once\n\nnamespace course {\n\ninline constexpr const char* kBuildCommit = \"${commit}\";\n\n}  // namespace course\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
