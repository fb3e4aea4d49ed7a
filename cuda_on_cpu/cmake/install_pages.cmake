# Installs the pages of documentation from ${source} to ${destination}. Links to the source, which is not installed, become text.
file(GLOB pages RELATIVE ${source} ${source}/docs/*.md)
foreach(page IN LISTS pages ITEMS README.md calibration/README.md)
  message(STATUS "Installing: ${destination}/${page}")
  file(READ "${source}/${page}" text)
  string(REGEX REPLACE "\\[([^]]*)\\]\\(\\.\\./(include|inspector|libraries|nvcc|src|test|translator)[^)]*\\)" "\\1" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\([^/)]*\\.cu\\)" "\\1" text "${text}")
  file(WRITE "${destination}/${page}" "${text}")
endforeach()
