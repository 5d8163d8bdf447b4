/* Names of glibc that Debian's libstdc++.so and libgcc_s.so use and musl lacks, preloaded so that a program made for musl
 * runs with them. A system with musl has libraries of its own: this is for trials on Debian alone, and in no package. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

char __libc_single_threaded = 0;

/* For programs that link libgcc_s's own; nothing here asks them. */
unsigned __cpu_model[4];
int __cpu_indicator_init(void) { return 0; }

unsigned long __getauxval(unsigned long type) { return getauxval(type); }

size_t __strftime_l(char *out, size_t size, const char *format, const struct tm *time, void *locale) {
  (void)locale;
  return strftime(out, size, format, time);
}

uint32_t arc4random(void) {
  uint32_t value = 0;
  return getentropy(&value, sizeof value) == 0 ? value : 4;
}

struct search {
  uintptr_t address;
  struct dl_find_object *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  const char *base = (const char *)info->dlpi_addr;
  uintptr_t start = UINTPTR_MAX, end = 0;
  void *table = NULL;
  int holds = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = info->dlpi_phdr + i;
    const uintptr_t from = (uintptr_t)(base + part->p_vaddr), to = from + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) table = (void *)from;
    if (part->p_type != PT_LOAD) continue;
    if (from < start) start = from;
    if (to > end) end = to;
    if (search->address >= from && search->address < to) holds = 1;
  }
  if (!holds || table == NULL) return 0;
  *search->found = (struct dl_find_object){.dlfo_map_start = (void *)start, .dlfo_map_end = (void *)end, .dlfo_eh_frame = table};
  return 1;
}

/* Destructors of a thread, the latest first. */
struct end {
  void (*run)(void *);
  void *object;
  struct end *next;
};

static pthread_key_t ends;

static void end_thread(void *first) {
  for (struct end *end = first; end != NULL;) {
    struct end *next = end->next;
    end->run(end->object);
    free(end);
    end = next;
  }
}

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&ends, end_thread); }

int __cxa_thread_atexit_impl(void (*run)(void *), void *object, void *module) {
  (void)module;
  struct end *end = malloc(sizeof *end);
  if (end == NULL) return -1;
  *end = (struct end){run, object, pthread_getspecific(ends)};
  return pthread_setspecific(ends, end);
}

/* libgcc finds the tables for unwinding by this function alone. */
int _dl_find_object(void *address, struct dl_find_object *found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
