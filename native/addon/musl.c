/* Names of glibc that the compiler's own libraries use, for a build with musl by a compiler for glibc. */
#include <sys/auxv.h>

/* libstdc++ counts without atomic operations if this is true. */
char __libc_single_threaded = 0;

/* libgcc asks for the processor's atomic instructions. */
unsigned long __getauxval(unsigned long type);
unsigned long __getauxval(unsigned long type) { return getauxval(type); }
