// What Swift cannot call of libsqlite3: variadic functions, and constants that are casts.
#ifndef HOLDFAST_CSQLITE_SHIM_H
#define HOLDFAST_CSQLITE_SHIM_H
#include <sqlite3.h>

static inline int holdfast_sqlite3_db_config_flag(sqlite3 *db, int option, int on) {
  int now = 0;
  return sqlite3_db_config(db, option, on, &now);
}

static inline int holdfast_sqlite3_config_log(void (*log)(void *, int, const char *), void *context) {
  return sqlite3_config(SQLITE_CONFIG_LOG, log, context);
}

static inline int holdfast_sqlite3_config_memory_statistics(int on) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, on); }
#endif
