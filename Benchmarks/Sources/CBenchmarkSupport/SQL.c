#include "BenchmarkSupport.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static int keep(void *value, int count, char **columns, char **names) {
  (void)names;
  if (count > 0) *(int64_t *)value = columns[0] ? atoll(columns[0]) : 0;
  return 0;
}

int holdfast_benchmark_sql(const char *path, const char *script, int64_t *value, char *message, uint64_t size) {
  sqlite3 *database = NULL;
  char *error = NULL;
  *value = 0;
  int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL);
  if (code == SQLITE_OK) code = sqlite3_exec(database, script, keep, value, &error);
  if (code != SQLITE_OK) snprintf(message, (size_t)size, "%s", error ? error : sqlite3_errstr(code));
  sqlite3_free(error);
  int closed = sqlite3_close(database);
  return code == SQLITE_OK ? closed : code;
}
