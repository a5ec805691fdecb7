# Writes git_revision.hpp into OUTPUT_DIRECTORY, at every build but only where it changes.
execute_process(COMMAND git describe --always --dirty --abbrev=12
  WORKING_DIRECTORY ${SOURCE_DIRECTORY}
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE result ERROR_QUIET)
if(NOT result EQUAL 0 OR revision STREQUAL "")
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT_DIRECTORY}/git_revision.hpp CONTENT
"#pragma once
namespace hcp {
inline constexpr const char* git_revision = \"${revision}\";
}
")
