# cmake -D PTX=<file> -D SOURCE=<file> -P embed_ptx.cmake: the PTX as a string of the program.
file(READ ${PTX} text)
file(WRITE ${SOURCE} "#include \"tests/ptx/conformance/micro_kernels.hpp\"

const char* hcp::ptx::micro_kernels_ptx() {
  return R\"ptx(${text})ptx\";
}
")
