// Stands in for the runtime: writes what the hooks report to the file named by FAKE_LOG, one event per line, fields
// separated by tabs. Layouts: crates/abi/src/module.rs.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct site { uint32_t id, line, column, file, function, name, kind, inlined_at; };
struct function { uint32_t symbol, name, file, line, slots, flags; };
struct module {
  uint64_t magic;
  uint32_t version, site_count;
  void **hooks;
  struct site *sites;
  struct function *functions;
  uint32_t function_count, strings_len;
  const char *strings;
  const unsigned char *digest;
  uint64_t digest_len;
};
struct frame { struct frame *prev; struct function *function; struct site *site; void *address; uint64_t slots[]; };

static struct module *modules[256];
static int count;
static FILE *out;
static struct frame *top;

static struct module *module_of_site(struct site *s) {
  for (int i = 0; i < count; i++)
    if (s >= modules[i]->sites && s < modules[i]->sites + modules[i]->site_count) return modules[i];
  return 0;
}

static struct module *module_of_function(struct function *f) {
  for (int i = 0; i < count; i++)
    if (f >= modules[i]->functions && f < modules[i]->functions + modules[i]->function_count) return modules[i];
  return 0;
}

// file, line, column, function, name, kind, inlined chain, stack, slots, site, address
static void put_site(struct site *s, void *address) {
  struct module *m = module_of_site(s);
  if (!m) { fprintf(out, "\tNO SITE\n"); return; }
  fprintf(out, "\t%s\t%u\t%u\t%s\t%s\t%u\t", m->strings + s->file, s->line, s->column,
          m->strings + m->functions[s->function].name, m->strings + s->name, s->kind);
  uint32_t index = s - m->sites;
  for (; s->inlined_at; s = &m->sites[s->inlined_at - 1]) {
    struct site *at = &m->sites[s->inlined_at - 1];
    fprintf(out, "%s:%u,", m->strings + m->functions[at->function].name, at->line);
  }
  fprintf(out, "\t");
  for (struct frame *f = top; f; f = f->prev) {
    struct module *o = module_of_function(f->function);
    fprintf(out, "%s:%u,", o ? o->strings + f->function->name : "NO FUNCTION", f != top && f->site ? f->site->line : 0);
  }
  fprintf(out, "\t");
  for (uint32_t i = 0; top && i < top->function->slots; i++) fprintf(out, "%lx,", top->slots[i]);
  fprintf(out, "\t%u\t%lx\n", index, (unsigned long)address);
}

static void access(const char *what, void *a, size_t n, struct site *s) { fprintf(out, "%s\t%zu", what, n); put_site(s, a); }
static void load(void *a, size_t n, struct site *s) { access("load", a, n, s); }
static void store(void *a, size_t n, struct site *s) { access("store", a, n, s); }
static void load_range(void *a, size_t n, struct site *s) { access("load_range", a, n, s); }
static void store_range(void *a, size_t n, struct site *s) { access("store_range", a, n, s); }
static void before(void *a, uint32_t shape, struct site *s) { access("atomic", a, shape, s); }
static void after(void *a, uint32_t shape, uint32_t ok) { fprintf(out, "after\t%u\t%u\n", shape, ok); }
static void fence(uint32_t order, struct site *s) { access("fence", 0, order, s); }

static void loop_back(struct site *s) {
  static int rounds;
  access("loop", 0, 0, s);
  if (++rounds == 100000) _Exit(99);
}

static void end(void) {
  int depth = 0;
  for (struct frame *f = top; f; f = f->prev) depth++;
  fprintf(out, "end\t%d\n", depth);
}

static void hex(const char *what, const void *data, size_t len) {
  fprintf(out, "%s\t", what);
  for (size_t i = 0; i < len; i++) fprintf(out, "%02x", ((const unsigned char *)data)[i]);
  fprintf(out, "\n");
}

void __symdpor_register(struct module *m) {
  if (!out) {
    const char *path = getenv("FAKE_LOG");
    out = fopen(path ? path : "/dev/null", "w");
    setvbuf(out, 0, _IOLBF, 0);
    atexit(end);
  }
  if (memcmp(&m->magic, "SYMDPOR1", 8) || m->version != 7) { fprintf(out, "bad module\n"); return; }
  modules[count++] = m;
  fprintf(out, "module\t%u\t%u\n", m->site_count, m->function_count);
  hex("digest", m->digest, m->digest_len);
  hex("strings", m->strings, m->strings_len);
  for (unsigned i = 0; i < m->function_count; i++)
    fprintf(out, "entry\t%u\t%u\n", m->functions[i].symbol, m->functions[i].slots);
  for (unsigned i = 0; i < m->function_count; i++)
    fprintf(out, "function\t%s\t%s\t%u\t%u\t%u\n", m->strings + m->functions[i].symbol,
            m->strings + m->functions[i].name, m->functions[i].line, m->functions[i].flags, m->functions[i].slots);
  void *hooks[] = {&top, load, store, load_range, store_range, before, after, fence, loop_back};
  memcpy(m->hooks, hooks, sizeof hooks);
}
