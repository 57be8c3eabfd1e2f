# Writes build_id (src/device/key.h): cmake -DMADE=FILE -DVERSION=TEXT -DFILES=LIST -P BuildId.cmake

set(all "${VERSION}")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} hash)
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 id "${all}")
file(WRITE ${MADE} "#include \"device/key.h\"\n\nconst char build_id[] = \"${VERSION} ${id}\";\n")
