# Writes build_id (src/compile/cache_keys.h): cmake -DMADE=FILE -DVERSION=TEXT -DFILES=LIST -P BuildId.cmake

set(all "${VERSION}")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} hash)
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 id "${all}")
file(WRITE ${MADE} "#include \"compile/cache_keys.h\"\n\nconst char build_id[] = \"${VERSION} ${id}\";\n")
