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

static inline int holdfast_sqlite3_bind_text_static(sqlite3_stmt *statement, int index, const char *bytes, int count) {
  return sqlite3_bind_text(statement, index, bytes, count, SQLITE_STATIC);
}

static inline int holdfast_sqlite3_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_STATIC);
}

static inline int holdfast_sqlite3_bind_text_copy(sqlite3_stmt *statement, int index, const char *bytes, int count) {
  return sqlite3_bind_text(statement, index, bytes, count, SQLITE_TRANSIENT);
}
#endif
