// What Swift can't use of libsqlite3: variadic functions, and constants that are missing in the headers of older versions.
#ifndef HOLDFAST_CSQLITE_SHIM_H
#define HOLDFAST_CSQLITE_SHIM_H
#include <sqlite3.h>

// Since 3.33. Older versions have the same constant with another name.
#ifndef SQLITE_OPEN_SUPER_JOURNAL
#define SQLITE_OPEN_SUPER_JOURNAL 0x00004000
#endif

// Since 3.37. Older versions ignore it.
#ifndef SQLITE_OPEN_EXRESCODE
#define SQLITE_OPEN_EXRESCODE 0x02000000
#endif

static inline int holdfast_sqlite3_db_config_flag(sqlite3 *db, int option, int on) {
  int now = 0;
  return sqlite3_db_config(db, option, on, &now);
}

static inline int holdfast_sqlite3_config_log(void (*log)(void *, int, const char *), void *context) {
  return sqlite3_config(SQLITE_CONFIG_LOG, log, context);
}

static inline int holdfast_sqlite3_config_memory_statistics(int on) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, on); }
#endif
